import { useState } from 'preact/hooks';
import { AskButton } from '../parts/ask-button.tsx';
import { ask } from '../api.ts';
import { announce } from '../parts/announce.ts';
import { Badge } from '../parts/badge.tsx';
import { now } from '../parts/clock.ts';
import { Choice } from '../parts/form.tsx';
import { Confirm } from '../parts/confirm.tsx';
import { locationName } from '../parts/names.ts';
import { Dated } from '../parts/dated.tsx';
import type { Kitchen, ListedLocation } from '../wire.ts';
import { EXTRA_MINUTES, KITCHEN_TONES, kitchenInShort, saidBy } from './kitchen.ts';
import { HowLong } from './how-long.tsx';
import './locations.css';
import { firstLength, pauseOf, stateOfOrders } from './pause.ts';

/** Whether the kitchen takes orders and, if not as usual, since when and who said it. @param about.orders who paused it is said there */
export function KitchenNow({ kitchen, orders }: { kitchen: Kitchen; orders: ReturnType<typeof stateOfOrders> }) {
  const { state, since, until, reason, sequence } = kitchen;
  const isUnusual = sequence > 0 && state !== 'open';
  const tone = orders === 'taking orders' || state !== 'open' ? KITCHEN_TONES[state] : 'plain';
  if (orders === 'paused' && state === 'closed') return 'reported as closed during the pause';
  return (
    <>
      <Badge tone={tone}>{kitchenInShort(kitchen)}</Badge>
      <Dated before=" since" at={isUnusual ? since : null} />
      {isUnusual && `, ${saidBy(kitchen)}`}
      <Dated before=", until" at={until} />
      {reason !== null && `: ${reason}`}
    </>
  );
}

type About = { location: Pick<ListedLocation, 'locationId' | 'timeZone' | 'kitchen'>; onDone: () => void };

/** Makes a kitchen busy, changes how busy it is, or ends that. */
export function BusyOrNot({ location, onDone }: About) {
  // The page is reloaded while the dialog is open, and the dialog must not change its meaning.
  const [chosen, setChosen] = useState<'make' | 'end'>();
  const isBusy = location.kitchen.state === 'busy';
  const shared = { location, onDone, onClose: () => setChosen(undefined) };
  return (
    <>
      <button type="button" onClick={() => setChosen('make')}>
        {isBusy ? 'Change busy …' : 'Busy …'}
      </button>
      {isBusy && <AskButton onClick={() => setChosen('end')}>End busy</AskButton>}
      {chosen !== undefined && <BusyDialog {...shared} isBusy={chosen === 'end'} />}
    </>
  );
}

function BusyDialog({ location, isBusy, onDone, onClose }: About & { isBusy: boolean; onClose: () => void }) {
  const { locationId } = location;
  const [extra, setExtra] = useState('20');
  const [length, setLength] = useState(() => firstLength([{ timeZone: location.timeZone }], now.peek()));
  const path = `/locations/${encodeURIComponent(locationId)}/busy`;
  const change = async (): Promise<void> => {
    if (isBusy) await ask<Kitchen>('DELETE', path);
    else {
      const body = { extraMinutes: Number(extra), ...pauseOf(length, '', location, now.peek()) };
      await ask<Kitchen>('PUT', path, { body });
    }
    onDone();
    announce(`${locationName(locationId)}: ${isBusy ? 'no longer busy' : 'busy'}`);
  };
  return (
    <Confirm
      title={
        isBusy
          ? `End the busy state of ${locationName(locationId)}?`
          : `Make the kitchen of ${locationName(locationId)} busy?`
      }
      action={isBusy ? 'End busy' : 'Make busy'}
      onConfirm={change}
      onClose={onClose}
    >
      {isBusy ? (
        <p>Orders take their usual time again. This also ends what the POS reported.</p>
      ) : (
        <>
          <p>Orders are still sent to the POS. The platform can read that each one takes longer.</p>
          <Choice
            id="busy-extra"
            label="Each order takes longer by"
            value={extra}
            options={EXTRA_MINUTES.map((minutes) => [minutes, `${minutes} minutes`] as const)}
            onChoose={setExtra}
          />
          <HowLong places={[location]} length={length} ends="ends it" onChange={setLength} />
        </>
      )}
    </Confirm>
  );
}
