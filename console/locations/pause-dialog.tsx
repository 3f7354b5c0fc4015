import { useRef, useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { announce } from '../parts/announce.ts';
import { Confirm } from '../parts/confirm.tsx';
import { locationName } from '../parts/names.ts';
import type { ListedLocation, PausedLocation } from '../wire.ts';
import { now } from '../parts/clock.ts';
import { Text } from '../parts/form.tsx';
import { HowLong } from './how-long.tsx';
import './locations.css';
import { firstLength, pauseOf } from './pause.ts';

type Place = Pick<ListedLocation, 'locationId' | 'timeZone' | 'pausedAt' | 'pausedUntil' | 'pausedReason'>;
type About = { locations: readonly Place[]; onDone: () => void; onClose: () => void };

const REASONS = ['The kitchen is full', 'The restaurant is closed', 'The POS does not work'];

/** Pauses one location or several, for a time, or changes a pause. */
export function PauseDialog({ locations, onDone, onClose }: About) {
  // The page is loaded again while the dialog is open, and the dialog must not change its meaning.
  const [places] = useState(locations);
  const { pausedAt = null, pausedReason = null }: Partial<Place> = places[0] ?? {};
  const [length, setLength] = useState(() => firstLength(places, now.peek()));
  const [reason, setReason] = useState(pausedReason ?? '');
  const change = useEach(places, 'pause', onDone);
  return (
    <Confirm
      title={pausedAt === null ? `Pause ${nameOf(places)}?` : `Change the pause of ${nameOf(places)}?`}
      action={pausedAt === null ? 'Pause' : 'Change the pause'}
      onConfirm={() => change((location) => pauseOf(length, reason, location, now.peek()))}
      onClose={onClose}
    >
      <p>
        New orders, and orders without a ticket, wait. Nothing is lost, and no order runs out of time during the pause.
        Orders that are at the POS continue.
      </p>
      <HowLong places={places} length={length} ends="resumes it" onChange={setLength} />
      <Text
        id="pause-reason"
        label="Why, for colleagues"
        offers={REASONS.map((each) => [each])}
        maxLength={200}
        value={reason}
        onWrite={setReason}
      />
    </Confirm>
  );
}

export function ResumeDialog({ locations, onDone, onClose }: About) {
  const [places] = useState(locations);
  const change = useEach(places, 'resume', onDone);
  return (
    <Confirm
      title={`Resume ${nameOf(places)}?`}
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
