import { useEffect, useState } from 'preact/hooks';
import { printable } from '../../src/observe/terminal-text.ts';
import { pageOf } from './page-of.ts';
import { findLocation, locationName, names } from './names.ts';

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

/**
 * The choice of a location by its name. A text that names none is refused.
 * @param value its id, or empty for none; also one that no longer exists, because a shared link may name it
 */
export function LocationField({
  id,
  label,
  value,
  onChoose,
}: {
  id: string;
  label: string;
  value: string;
  onChoose: (locationId: string) => void;
}) {
  const shown = value === '' ? '' : locationName(value);
  const [text, setText] = useState(shown);
  const [isUnknown, setUnknown] = useState(false);
  useEffect(() => {
    setText(shown);
    setUnknown(false);
  }, [shown]);
  const choose = (): void => {
    const found = text.trim() === '' ? '' : text === shown ? value : findLocation(text);
    setUnknown(found === undefined);
    if (found !== undefined && found !== value) onChoose(found);
  };
  return (
    <div class="field">
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        list={`${id}-offers`}
        value={text}
        autocomplete="off"
        spellcheck={false}
        maxLength={255}
        aria-invalid={isUnknown}
        aria-describedby={isUnknown ? `${id}-problem` : undefined}
        onInput={(event) => setText(event.currentTarget.value)}
        onChange={choose}
      />
      {isUnknown && (
        <span id={`${id}-problem`} class="problem" role="alert">
          No location has this name. Choose one of the list.
        </span>
      )}
      <datalist id={`${id}-offers`}>
        {[...names.value].map(([locationId, name]) => (
          <option key={locationId} value={name}>
            {name === locationId ? undefined : locationId}
          </option>
        ))}
      </datalist>
    </div>
  );
}
