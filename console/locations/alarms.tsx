import { useEffect, useState } from 'preact/hooks';
import { API, query } from '../api.ts';
import { NO_ORDERS } from '../board/create-board.ts';
import { isSilent, needsOf } from '../board/needs-of.ts';
import { onlyConfigures } from '../may.ts';
import '../orders/orders.css';
import { tenSeconds } from '../parts/clock.ts';
import { followInSight } from '../parts/follow-in-sight.ts';
import { Time } from '../parts/time.tsx';
import type { Attention, ShownLocation } from '../wire.ts';
import { Contacts } from './contact-line.tsx';
import './locations.css';

/** `isCall` if its POS is silent or does not answer. */
export type Alarm = { tone: string; what: string; since: string; isCall: boolean };

/** What the board shows of the location itself, live. */
export function useAlarms(locationId: string): Alarm[] {
  const [attention, setAttention] = useState<Attention>();
  useEffect(() => {
    setAttention(undefined);
    if (onlyConfigures(locationId)) return undefined;
    return followInSight(`${API}/live${query({ location: locationId })}`, (source) =>
      source.addEventListener('attention', ({ data }) => setAttention(JSON.parse(data as string) as Attention)),
    );
  }, [locationId]);
  const filter = { location: locationId, integration: '', text: '' };
  // A snoozed alarm is still true here: only its colour is gone.
  return needsOf(NO_ORDERS, attention, filter, tenSeconds.value).flatMap(({ tone, needs, hidden }) =>
    [...needs, ...hidden]
      .filter(({ subject }) => subject?.kind === 'location')
      .map((need) => ({
        tone: hidden.includes(need) ? 'plain' : tone,
        what: need.brief[0] ?? '',
        since: new Date(need.since).toISOString(),
        isCall: isSilent(need),
      })),
  );
}

const LACKS_TOKEN = ' It has no valid token, so its POS can report nothing. Make one under Connection.';

/** Why the location is on the board, and whom to call. */
export function AlarmBanner({ alarm, location }: { alarm: Alarm; location: ShownLocation | undefined }) {
  const { tone, what, since } = alarm;
  return (
    <div class={`apart orders-banner ${tone}`}>
      <div>
        <p class="orders-sentence">
          {what} since <Time at={since} />.
          {tone !== 'plain' && (location?.validTokens === 0 ? LACKS_TOKEN : ' Call the restaurant.')}
        </p>
        {location !== undefined && <Contacts {...location} />}
      </div>
    </div>
  );
}
