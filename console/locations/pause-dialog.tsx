import { useRef, useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { announce } from '../parts/announce.ts';
import { Choice } from '../parts/choice.tsx';
import { Confirm } from '../parts/confirm.tsx';
import { locationName } from '../parts/names.ts';
import type { ListedLocation, PausedLocation } from '../wire.ts';
import './locations.css';
import { PAUSES, pauseOf } from './pause.ts';

type Place = Pick<ListedLocation, 'locationId' | 'timeZone'>;
type About = { locations: readonly Place[]; onDone: () => void; onClose: () => void };

const REASONS = ['The kitchen is full', 'The restaurant is closed', 'The POS does not work'];

/** Pauses one location or several, for a time. */
export function PauseDialog({ locations, onDone, onClose }: About) {
  const [length, setLength] = useState('30');
  const [reason, setReason] = useState('');
  const change = useEach(locations, 'pause', onDone);
  return (
    <Confirm
      title={`Pause ${nameOf(locations)}?`}
      action="Pause"
      onConfirm={() => change((location) => pauseOf(length, reason, location, Date.now()))}
      onClose={onClose}
    >
      <p>
        New orders, and orders without a ticket, wait. Nothing is lost, and no order runs out of time during the pause.
        Orders that are at the POS continue.
      </p>
      <div class="pause">
        <Choice id="pause-length" label="How long" value={length} options={PAUSES} onChoose={setLength} />
        <div class="field">
          <label htmlFor="pause-reason">Why, for colleagues</label>
          <input
            id="pause-reason"
            list="pause-reasons"
            value={reason}
            maxLength={200}
            autocomplete="off"
            onInput={({ currentTarget: { value } }) => setReason(value)}
          />
          <datalist id="pause-reasons">
            {REASONS.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </datalist>
        </div>
      </div>
      {length === 'morning' && locations.some(({ timeZone }) => timeZone === null) && (
        <p class="faint">A location without a time zone gets the time of this browser.</p>
      )}
    </Confirm>
  );
}

export function ResumeDialog({ locations, onDone, onClose }: About) {
  const change = useEach(locations, 'resume', onDone);
  return (
    <Confirm
      title={`Resume ${nameOf(locations)}?`}
      action="Resume"
      onConfirm={() => change(() => undefined)}
      onClose={onClose}
    >
      <p>Waiting orders are sent to the POS at once. New orders are sent as they arrive.</p>
    </Confirm>
  );
}

function nameOf(locations: readonly Place[]): string {
  const [only, ...others] = locations;
  return others.length === 0 && only ? locationName(only.locationId) : `${locations.length} locations`;
}

/** Changes each location. A second try leaves out the ones that were changed. @throws Error that names the others */
function useEach(locations: readonly Place[], verb: 'pause' | 'resume', onDone: () => void) {
  const left = useRef(locations);
  return async (bodyOf: (location: Place) => object | undefined): Promise<void> => {
    const failed: { location: Place; problem: string }[] = [];
    for (const location of left.current) {
      const path = `/locations/${encodeURIComponent(location.locationId)}/${verb}`;
      await ask<PausedLocation>('POST', path, { body: bodyOf(location) }).catch((error: Error) =>
        failed.push({ location, problem: error.message }),
      );
    }
    left.current = failed.map(({ location }) => location);
    onDone();
    if (failed.length > 0)
      throw new Error(
        failed.map(({ location, problem }) => `${locationName(location.locationId)}: ${problem}`).join(' '),
      );
    announce(`${nameOf(locations)}: ${verb === 'pause' ? 'paused' : 'taking orders'}`);
  };
}
