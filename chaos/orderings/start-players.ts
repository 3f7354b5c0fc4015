import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { concludeByPhone, requestCancellation } from '../../src/core/cancellations/operator-cancellations.ts';
import type { LiveMessage } from '../../src/core/domain/live-message.ts';
import type { CanonicalOrder } from '../../src/core/domain/order.ts';
import { rankOf } from '../../src/core/domain/lifecycle.ts';
import { issueToken } from '../../src/core/locations/webhook-tokens.ts';
import { resolveThere } from '../../src/core/placements/resolve-doubt.ts';
import { OPERATOR_TOKEN } from '../../test/support/ask-operator.ts';
import { AHEAD } from '../../test/support/move-clock.ts';
import { postWithAgent } from '../../test/support/post-with-agent.ts';
import { sampleOrder } from '../../test/support/sample-order.ts';
import { resolveAMinuteLater } from '../../test/support/resolve-a-minute-later.ts';
import type { System } from '../../test/support/start-system.ts';
import { startPair } from '../start-pair.ts';
import { KINDS, end, happens, nameOf, scriptedTills, type Kind, type Till } from './scripted-tills.ts';
import { ROUNDS, type Script, type Step } from './any-script.ts';

/** The state of an order in the database at the end. */
export type Row = {
  id: string;
  rank: number;
  sequence: number;
  ended: boolean;
  cancellation: string | null;
  state: string;
  cause: string | null;
  waitsForPerson: boolean;
  cancelState: string | null;
  /** True if the cancellation is not finished. The failure of its order finishes it, whatever its state. */
  cancelIsOpen: boolean;
  changes: { path: string; is?: unknown }[] | null;
  conflict: boolean;
  /** The stored order at the beginning of each request for a ticket. */
  begun: { notes: string; cancellation: string | null }[];
};

/** One order at the end of its play. */
export type Played = {
  /** The number of its location. */
  nth: number;
  serviceOrderId: string;
  script: Script;
  till: Till;
  onPlatform: CanonicalOrder;
  /** How many cancels operators requested. */
  operatorCancels: number;
  /** The number of requests for a ticket at each time when a person settled the doubt. */
  settledAfter: number[];
  row: Row | undefined;
  live: LiveMessage[];
};

type Play = Omit<Played, 'row' | 'live'>;

/** Seconds before each round. If a round takes about a second, no wait of the service ends at the end of a round. */
const STEP_S = 40;
/** Seconds until a call that failed once is tried again. */
const BACKOFF_S = 8;
/** How often a request is tried while the service asks to try again, and the pause between tries. */
const TRIES = 60;
const AGAIN_MS = 500;
/** The steps of time in seconds after the last round, until nothing is due any more. */
const LATER_S = [30, 60, 120, 200, 300, 600, 900, 1_800, 1_800, 3_600];
/** The most orders in one play. Each has its own location, so that no order waits for another. */
export const ORDERS = 18 * KINDS.length;

/** Records the stored order at the beginning of each request for a ticket, under the lock of the order. */
const WATCH = `
  CREATE TABLE begun (service_order_id text NOT NULL, nth bigserial, notes text, cancellation text);
  CREATE FUNCTION watch_begun() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    INSERT INTO begun (service_order_id, notes, cancellation)
    SELECT o.service_order_id, d.contents ->> 'notes', o.cancellation
    FROM orders o JOIN order_contents d USING (service_order_id) WHERE o.service_order_id = NEW.service_order_id;
    RETURN NEW;
  END $$;
  CREATE TRIGGER watch_begun AFTER INSERT ON placement_attempts
    FOR EACH ROW WHEN (NEW.call = 'createOrder') EXECUTE FUNCTION watch_begun()`;

/** Selects the work that is due for the orders $1. The orders $2 have a call whose process died. */
const DUE = `
  WITH dead AS (
    SELECT service_order_id, call FROM placement_attempts
    WHERE service_order_id = ANY ($1) AND service_order_id = ANY ($2) AND ended_at IS NULL
  ), due AS (
    SELECT 'placement ' || state AS what, service_order_id, next_attempt_at AS at,
           NOT (lease_until > now() AND EXISTS (SELECT FROM dead d WHERE
             d.service_order_id = p.service_order_id AND d.call <> 'cancelOrder')) AS free
    FROM placements p
    WHERE finished_at IS NULL AND service_order_id = ANY ($1)
    UNION ALL
    -- While the order is in doubt, its refresh waits until a person settles the doubt.
    SELECT 'look', service_order_id, l.next_attempt_at, true
    FROM refreshes l JOIN placements p USING (service_order_id)
    WHERE (p.finished_at IS NOT NULL OR p.next_attempt_at <> 'infinity') AND service_order_id = ANY ($1)
    UNION ALL
    SELECT 'cancellation ' || c.state, service_order_id,
           CASE WHEN o.ended_at IS NULL THEN c.next_attempt_at ELSE now() END,
           NOT (c.lease_until > now() AND EXISTS (SELECT FROM dead d WHERE
             d.service_order_id = c.service_order_id AND d.call = 'cancelOrder'))
             AND (p.finished_at IS NOT NULL OR p.next_attempt_at = 'infinity' OR p.cause ->> 'code' = 'cancelled_in_doubt')
    FROM cancellations c JOIN orders o USING (service_order_id) JOIN placements p USING (service_order_id)
    WHERE c.finished_at IS NULL AND service_order_id = ANY ($1)
    UNION ALL
    SELECT 'message', service_order_id, now(), true FROM outbox WHERE service_order_id = ANY ($1)
    UNION ALL
    SELECT 'event', service_order_id, now(), true
    FROM parked_events JOIN provider_orders USING (location_id, integration, provider_order_id)
    WHERE service_order_id = ANY ($1)
  )
  SELECT coalesce(array_agg(what || ' of ' || service_order_id) FILTER (WHERE at <= now() AND free), '{}') AS now,
         count(*) FILTER (WHERE at < 'infinity')::int AS later
  FROM due`;

const ENDS = `
  SELECT p.service_order_id AS id, coalesce(o.rank, 0) AS rank, o.sequence, o.ended_at IS NOT NULL AS ended, o.cancellation,
         p.state, p.cause ->> 'code' AS cause, p.finished_at IS NULL AND p.next_attempt_at = 'infinity' AS "waitsForPerson",
         c.state AS "cancelState", num_nulls(c.service_order_id, c.finished_at) = 1 AS "cancelIsOpen",
         (SELECT changes FROM order_changes h WHERE h.service_order_id = p.service_order_id
          ORDER BY seen_at DESC LIMIT 1) AS changes,
         EXISTS (SELECT FROM status_events e WHERE e.service_order_id = p.service_order_id AND e.conflict) AS conflict,
         (SELECT coalesce(json_agg(json_build_object('notes', b.notes, 'cancellation', b.cancellation) ORDER BY b.nth), '[]')
          FROM begun b WHERE b.service_order_id = p.service_order_id) AS begun
  FROM placements p
  LEFT JOIN orders o USING (service_order_id)
  LEFT JOIN cancellations c USING (service_order_id)
  WHERE p.service_order_id = ANY ($1)`;

export type Players = {
  system: System;
  /** Posts until the answer is 200 or 204. @throws Error if it is not 500 or 503 either, or after the last try */
  post(url: string, body: object): Promise<void>;
  /** Plays scripts, all at once, until nothing is due any more. @param scripts by the number of their location */
  play(name: string, scripts: ReadonlyMap<number, Script>): Promise<Played[]>;
  stop(): Promise<void>;
};

/** Starts a system of two processes in which each location has a till. */
export async function startPlayers(): Promise<Players> {
  let aheadS = 0;
  const nowS = (): number => Date.now() / 1_000 + aheadS;
  const tills = scriptedTills(nowS);
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  const system = await startPair({
    providers: tills.providers,
    prepare: (databaseUrl) => run(databaseUrl, WATCH),
    env: {
      POOL_SIZE: '10',
      ORDER_QUERY_FILE: 'examples/order-with-cancels.graphql',
      // Without push tokens, because they would have expired when the clock was moved.
      PUSH_AUTH: 'off',
      OPERATOR_TOKEN,
      LOG_LEVEL: 'error',
    },
  });
  const locations = await Promise.all(
    Array.from({ length: ORDERS }, async (_, nth) => {
      const locationId = `till-${nth}`;
      const integration = nameOf(kindOf(nth));
      await system.addLocation(locationId, {}, integration);
      const { token } = await issueToken(system.pool, { locationId });
      return `/webhook/${integration}/${locationId}?token=${token}`;
    }),
  );
  await system.seedOrder({ serviceOrderId: 'over', locationId: 'till-0' });
  await system.query('UPDATE orders SET ended_at = now()');

  const post = async (url: string, body: object, headers: Record<string, string> = {}): Promise<void> => {
    for (let tries = 1; ; tries++) {
      const status = await postWithAgent(url, agent, {
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });
      if (/^20[04]$/.test(status)) return;
      // 500 and 503 ask the sender to try again.
      if (!/^50[03]$/.test(status) || tries === TRIES) {
        throw new Error(`${url.replace(/token=.*/, '')} answered ${status}: ${system.logged.slice(-5).join('')}`);
      }
      await sleep(AGAIN_MS);
    }
  };
  const signal = (serviceOrderId: string, at: number): Promise<void> => {
    const data = Buffer.from(JSON.stringify({ orderId: serviceOrderId })).toString('base64');
    return post(`${system.urls[at]}/pubsub/push`, { message: { data, messageId: '1' }, subscription: 'orders' });
  };
  /** Makes all workers look for work now instead of within a second or two. */
  const wake = async (): Promise<void> => {
    const authorization = `Bearer ${OPERATOR_TOKEN}`;
    await Promise.all([
      ...system.urls.map((_, at) => signal('over', at)),
      ...system.operatorUrls.map((url) => post(`${url}/v1/locations/till-0/resume`, {}, { authorization })),
    ]);
  };
  const pass = async (seconds: number): Promise<void> => {
    tills.arrive(nowS() + seconds);
    await system.query(AHEAD, [seconds]);
    aheadS += seconds;
    await wake();
  };

  /** Waits until nothing more happens at this time. @returns how much will happen later */
  const quiet = async (ids: readonly string[]): Promise<number> => {
    const deadline = Date.now() + 300_000;
    for (let polls = 1, inARow = 0; ; polls++) {
      const [due] = (await system.query(DUE, [ids, [...tills.died]])) as [{ now: string[]; later: number }];
      inARow = due.now.length + tills.underWay() === 0 ? inARow + 1 : 0;
      if (inARow === 2) return due.later;
      if (Date.now() > deadline) throw new Error(`still due: ${due.now.join()}`);
      if (polls % 5 === 0) await wake();
      await sleep(30);
    }
  };

  const onPlatform = (play: Play, about: Partial<CanonicalOrder>): void => {
    play.onPlatform = { ...play.onPlatform, ...about };
    system.platform.orders.set(play.serviceOrderId, play.onPlatform);
  };

  const take = async (play: Play, step: Step): Promise<void> => {
    const { serviceOrderId, till } = play;
    await sleep(step.afterMs);
    if (typeof step.do === 'object') {
      const { status, by, again } = step.do;
      if (!happens(till, status, again)) return;
      const [ticket] = till.tickets;
      return post(`${system.urls[step.process]}${locations[play.nth]}`, {
        status,
        nativeStatus: status,
        ...(by !== 'pos' && { serviceOrderId }),
        ...(by !== 'ours' && { providerOrderId: ticket?.providerOrderId }),
      });
    }
    if (step.do === 'operator') {
      const asked = await requestCancellation(system.pool, serviceOrderId);
      if (asked !== undefined && 'cancel' in asked && asked.cancel !== 'under_way') play.operatorCancels += 1;
      return undefined;
    }
    if (step.do === 'person') return person(play);
    if (step.do === 'cancel')
      onPlatform(play, { cancelledAt: '2027-01-31T18:00:00Z', cancelReason: 'changed my mind' });
    if (step.do === 'change') onPlatform(play, { notes: `${play.onPlatform.notes}+` });
    return signal(serviceOrderId, step.process);
  };

  /** Does what the board asks a person to do: checks the POS, and phones the restaurant. */
  const person = async (play: Play): Promise<void> => {
    const { serviceOrderId, till } = play;
    const [row] = await read([serviceOrderId]);
    if (row === undefined || till.arrivals.length > 0) return;
    const [ticket] = till.tickets;
    if (row.state === 'in_doubt' && row.waitsForPerson && row.cancelState !== 'by_phone') {
      if (ticket !== undefined) {
        await resolveThere(system.pool, serviceOrderId, { providerOrderId: ticket.providerOrderId });
      } else {
        play.settledAfter.push(till.sent.length);
        await resolveAMinuteLater(system, serviceOrderId);
      }
    } else if (row.cancelState === 'by_phone') {
      if (ticket === undefined && row.waitsForPerson) {
        await resolveAMinuteLater(system, serviceOrderId);
        return;
      }
      const isMade = ticket?.live === true && till.rank >= rankOf(till.tooLateFrom);
      if (ticket?.live === true && !isMade) end(till, 'cancelled');
      await concludeByPhone(system.pool, serviceOrderId, !isMade);
    }
  };

  const read = async (ids: readonly string[]): Promise<Row[]> => (await system.query(ENDS, [ids])) as Row[];

  return {
    system,
    post,
    async play(name, scripts) {
      const plays = Array.from(scripts, ([nth, script]): Play => {
        const locationId = `till-${nth}`;
        const serviceOrderId = `${name}-${nth}`;
        const till: Till = {
          ...script,
          kind: kindOf(nth),
          sent: [],
          tickets: [],
          mayHaveCancelled: 0,
          asked: { creates: 0, cancels: 0, finds: 0, reads: 0 },
          rank: 0,
          told: new Set(),
          arrivals: [],
        };
        tills.of.set(serviceOrderId, till);
        const order = sampleOrder({ serviceOrderId, locationId, notes: 'as ordered' });
        return { nth, serviceOrderId, script, till, onPlatform: order, operatorCancels: 0, settledAfter: [] };
      });
      const ids = plays.map(({ serviceOrderId }) => serviceOrderId);
      for (const play of plays) onPlatform(play, {});
      for (let round = 0; round <= ROUNDS; round++) {
        const takeAll = (calm: boolean): Promise<unknown> =>
          Promise.all(
            plays
              .filter((play) => play.script.calm === calm)
              .flatMap((play) =>
                play.script.steps.filter((step) => step.round === round).map((step) => take(play, step)),
              ),
          );
        if (round > 0) await pass(round % 2 === 1 ? STEP_S - BACKOFF_S : STEP_S);
        const placed = round > 0 ? [] : plays.map(({ serviceOrderId }) => signal(serviceOrderId, 0));
        // Other scripts take their steps while due work is done. Calm ones take theirs below, when nothing is due.
        await Promise.all([...placed, takeAll(false)]);
        await quiet(ids);
        if (round % 2 === 0 && round < ROUNDS) continue;
        await pass(BACKOFF_S);
        await quiet(ids);
        await takeAll(true);
        await quiet(ids);
      }
      let later = 1;
      for (const seconds of LATER_S) {
        await pass(seconds);
        later = await quiet(ids);
        if (later === 0 && plays.every(({ till }) => till.arrivals.length === 0)) break;
      }
      if (later > 0) throw new Error(`${later} pieces of work are still due`);
      const rows = new Map((await read(ids)).map((row) => [row.id, row]));
      const live = Map.groupBy(system.pubsub.published('order-status'), (message) => message.orderingKey);
      tills.release();
      return plays.map((play) => ({
        ...play,
        row: rows.get(play.serviceOrderId),
        live: (live.get(play.serviceOrderId) ?? []).map(({ data }) => JSON.parse(data.toString()) as LiveMessage),
      }));
    },
    async stop() {
      tills.release();
      agent.destroy();
      await system.stop();
    },
  };
}

/** The kind of the nth order's till. */
function kindOf(nth: number): Kind {
  const kind = KINDS[nth % KINDS.length];
  if (kind === undefined) throw new RangeError('there are no kinds');
  return kind;
}

async function run(databaseUrl: string, sql: string): Promise<void> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  await client.query(sql);
  await client.end();
}
