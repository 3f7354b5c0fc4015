import { useEffect, useState } from 'preact/hooks';
import { printable } from '../../src/observe/terminal-text.ts';
import { Text } from './form.tsx';
import { pageOf } from './page-of.ts';
import { findLocation, isCalled, locationName, names } from './names.ts';

/** Names that are offered. With thousands, a browser takes half a second for each key. */
const MOST_OFFERS = 100;

/** A location's name, with its id as a tooltip. */
export function LocationName({ id }: { id: string }) {
  return <span title={printable(id)}>{locationName(id)}</span>;
}

/** A location's name, which leads to its page. */
export function LocationLink({ id }: { id: string }) {
  return (
    <a href={pageOf.location(id)} title={printable(id)}>
      {locationName(id)}
    </a>
  );
}

type AboutLocationField = {
  id: string;
  label: string;
  value: string;
  onChoose: (locationId: string) => void;
};

/**
 * The choice of a location by its name, or by a part of it that no other has. Another text is refused.
 * @param value its id, or empty for none; also one that no longer exists, because a shared link may name it
 */
export function LocationField({ id, label, value, onChoose }: AboutLocationField) {
  const shown = value === '' ? '' : locationName(value);
  const [text, setText] = useState(shown);
  const [isUnknown, setUnknown] = useState(false);
  useEffect(() => {
    setText(shown);
    setUnknown(false);
  }, [shown]);
  const offered = [...names.value].filter(([each]) => isCalled(each, text.trim().toLowerCase())).slice(0, MOST_OFFERS);
  const choose = (): void => {
    const found = text.trim() === '' ? '' : text === shown ? value : findLocation(text);
    setUnknown(found === undefined);
    if (found === undefined) return;
    setText(found === '' ? '' : locationName(found));
    if (found !== value) onChoose(found);
  };
  return (
    <Text
      id={id}
      label={label}
      value={text}
      problem={isUnknown ? 'No location has this name, or several have it. Choose one of the list.' : undefined}
      offers={offered.map(([each, name]) => (name === each ? [each] : [name, each]))}
      onWrite={setText}
      onDone={choose}
    />
  );
}
