import { useEffect, useState } from 'preact/hooks';
import { fromLocalTime, toLocalTime } from './local-time.ts';

/** A text input of a filter. The text takes effect on blur or Enter. */
export function Written({
  id,
  label,
  value,
  isCode = false,
  onWrite,
}: {
  id: string;
  label: string;
  value: string;
  isCode?: boolean;
  onWrite: (text: string) => void;
}) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return (
    <div class="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        class={isCode ? 'mono' : undefined}
        value={text}
        autocomplete="off"
        spellcheck={false}
        maxLength={255}
        onInput={(event) => setText(event.currentTarget.value)}
        onChange={(event) => onWrite(event.currentTarget.value.trim())}
      />
    </div>
  );
}

/** A time input in the reader's time zone. @param value an instant, or empty */
export function When({
  id,
  label,
  value,
  onSay,
}: {
  id: string;
  label: string;
  value: string;
  onSay: (instant: string) => void;
}) {
  return (
    <div class="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="datetime-local"
        value={toLocalTime(value)}
        onChange={(event) => onSay(fromLocalTime(event.currentTarget.value))}
      />
    </div>
  );
}
