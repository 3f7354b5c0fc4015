import { now } from '../parts/clock.ts';
import { Choice, Text } from '../parts/form.tsx';
import { clockOf, lengthsOf, problemOf, type Length, type Place } from './pause.ts';

type AboutLength = { places: readonly Place[]; length: Length; ends: string; onChange: (length: Length) => void };

/** The choice of how long something lasts at some locations. @param ends such as `resumes it` */
export function HowLong({ places, length, ends, onChange }: AboutLength) {
  return (
    <>
      <Choice
        id="how-long"
        label="How long"
        value={length.for}
        options={lengthsOf(places, ends)}
        onChoose={(chosen) => onChange({ ...length, for: chosen })}
      />
      {length.for === 'own' && (
        <Text
          id="how-long-until"
          label={`Until (${clockOf(places)})`}
          type="datetime-local"
          problem={problemOf(length, places, now.value)}
          value={length.until}
          onWrite={(until) => onChange({ ...length, until })}
        />
      )}
    </>
  );
}
