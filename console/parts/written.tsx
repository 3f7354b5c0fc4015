import { useEffect, useState } from 'preact/hooks';
import { Text, type FieldProps } from './form.tsx';
import { fromLocalTime, toLocalTime } from './local-time.ts';

type AboutWritten = FieldProps & {
  value: string;
  offers?: readonly string[];
  isCode?: boolean;
  type?: 'datetime-local';
  onWrite: (text: string) => void;
};

/** A text of a filter. It takes effect when the input is left, or with Enter. @param about.offers suggestions */
export function Written({ value, onWrite, offers = [], ...about }: AboutWritten) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return (
    <Text
      {...about}
      value={text}
      offers={offers.map((each) => [each])}
      onWrite={setText}
      onDone={(text) => onWrite(text.trim())}
    />
  );
}

/** A time of a filter, in the reader's time zone. @param value an instant, or empty */
export function When({ value, onSay, ...about }: FieldProps & { value: string; onSay: (instant: string) => void }) {
  const say = (local: string): void => onSay(fromLocalTime(local));
  return <Written {...about} type="datetime-local" value={toLocalTime(value)} onWrite={say} />;
}
