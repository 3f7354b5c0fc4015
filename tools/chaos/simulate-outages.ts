import pg from 'pg';
import { z } from 'zod';
import { TryAgain } from '../../src/core/domain/errors.ts';
import type { Provider } from '../../src/core/domain/provider.ts';
import { credentialStore } from '../../src/core/locations/credential-store.ts';
import { settingsDecrypter } from '../../src/core/locations/locations.ts';
import { pauseLocation } from '../../src/core/kitchens/pause-location.ts';
import { endPauses } from '../../src/core/kitchens/pos-pauses.ts';
import { findSuspects, probeKitchens } from '../../src/core/polling/probe-kitchens.ts';
import { putLocation } from '../../src/core/locations/put-location.ts';
import { parseSettingsKeys } from '../../src/core/locations/settings-key.ts';
import { settleKitchens } from '../../src/core/kitchens/settle-kitchens.ts';
import { allowedHosts } from '../../world/network/allowed-loopback.ts';
import { chance } from './chance.ts';
import { startDatabase } from './start-pair.ts';

export type Outages = {
  /** Hours of simulated kitchens, and how often one was called unreachable. */
  hours: number;
  called: number;
  /** How often its POS could have answered one of the last two calls or probes before that. */
  calledWrongly: number;
  /** How many of these are because of an order that its POS answers with a server error each time. */
  wronglyForAnOrder: number;
  /** Kitchens called later than a minute after the first call without an answer. */
  calledLate: number;
  /** Outages that end within 30 s, and how many of them made a kitchen unreachable. */
  shortOutages: number;
  shortCalled: number;
  /** Kitchens that were closed or open for 5 s longer than was said. */
  closedWrongly: number;
};

/** A time from its first to its last second, in seconds since the beginning. */
type Span = readonly [from: number, until: number];
type Order = { id: string; due: number; deadline: number; tries: number; isUnfit: boolean };
type Kitchen = {
  id: string;
  vendor: number;
  /** When its POS answers nothing, when its POS says that it is closed, and when an operator does. */
  outages: Span[];
  closings: Span[];
  pauses: Span[];
  arrivals: Span[];
  orders: Order[];
  /** For each call or probe without an answer since the last answer: whether the POS could have answered. */
  missed: boolean[];
  /** The outage in which a call had no answer, and when that was first. */
  tried: { outage: Span; at: number } | undefined;
  said: string;
};

const VENDORS = 5;
/** The POS systems of this vendor cannot be probed. */
const WITHOUT_CHECK = 4;
const KITCHENS = 500;
const END_S = 2 * 3_600;
/** The jobs of the service run at least as often. */
const STEP_S = 2;
const MINUTE_S = 60;
/** How long a probe, and a call for an order, wait for the answer. */
const PROBE_S = 5;
const CALL_S = 30;
/** The mean time to the answer at a slow vendor. It changes from one POS to the next, and every SAME_S. */
const SLOW_S = 6;
const SAME_S = 20;
/** The share of calls whose answer is lost on the way, and at a slow vendor. */
const LOST = 0.02;
const LOST_SLOW = 0.05;
/** The share of orders that their POS answers with a server error each time. */
const UNFIT = 1 / 1_000;
const SHORT_S = 30;
const CALLED_WITHIN_S = 60;
/** The share of calls as unreachable that must be right, and the share of short outages that may be called so. */
const RIGHT = 0.99;
const SHORT_CALLED = 0.5;
const CHANGED_WITHIN_S = 5;

/**
 * Plays two hours of 500 kitchens, step by step. The clock of the database stands still between two steps, so a seed
 * always gives the same result. Only probing, settling and the end of pauses are the service's.
 */
export async function simulateOutages(seed: number): Promise<Outages & { complaints: string[] }> {
  const world = drawWorld(seed);
  const { kitchens } = world;
  const counts = { called: 0, calledWrongly: 0, wronglyForAnOrder: 0, calledLate: 0, closedWrongly: 0 };
  const shortCalled = new Set<Span>();
  let at = 0;
  const without: Provider = {
    integration: 'without check',
    settings: z.object({ id: z.string() }),
    deduplicates: true,
    createOrder: async () => ({}),
    translateWebhook: () => [],
  };
  const probed: Provider = {
    ...without,
    integration: 'probed',
    checkProvesOrders: true,
    async check({ settings }) {
      const kitchen = kitchens.get((settings as { id: string }).id);
      if (kitchen !== undefined && !world.reach(kitchen, at, 'probe')) throw new TryAgain('no answer', { sent: false });
    },
  };
  const postgres = await startDatabase();
  // Each connection has its own clock.
  const pool = new pg.Pool({ connectionString: postgres.url, max: 1 });
  try {
    const deps = await prepare(pool, kitchens, [without, probed]);
    const began = Date.now();
    for (; at < END_S; at += STEP_S) {
      await pool.query(`SELECT set_config('chaos.now', $1, false)`, [new Date(began + at * 1_000).toISOString()]);
      const begin = (spans: Span[]): Span | undefined => spans.find(([from]) => from <= at && at < from + STEP_S);
      const calls: Call[] = [];
      for (const kitchen of kitchens.values()) {
        const pause = begin(kitchen.pauses);
        if (pause) await pauseLocation(pool, kitchen.id, { by: 'Anna', until: new Date(began + pause[1] * 1_000) });
        const closing = begin(kitchen.closings);
        if (closing) await pool.query(CLOSE, [kitchen.id, closing[1] - at]);
        calls.push(...world.sell(kitchen, at));
      }
      if (calls.length > 0) await pool.query(CALL, [JSON.stringify(calls)]);
      await endPauses(pool);
      await findSuspects(deps);
      await probeKitchens(deps, { stopping: new AbortController().signal });
      for (const { locationId, state } of await settleKitchens(pool)) {
        const kitchen = kitchens.get(locationId);
        if (kitchen === undefined) continue;
        kitchen.said = state;
        if (state !== 'unreachable') continue;
        counts.called += 1;
        const isWrong = kitchen.missed.length < 2 || kitchen.missed.slice(-2).some(Boolean);
        if (isWrong) counts.calledWrongly += 1;
        if (isWrong && kitchen.orders.some(({ isUnfit }) => isUnfit)) counts.wronglyForAnOrder += 1;
        const outage = spanAt(kitchen.outages, at);
        if (outage && isShort(outage)) shortCalled.add(outage);
      }
      for (const { said, tried, ...kitchen } of kitchens.values()) {
        const isLate = tried && spanAt(kitchen.outages, at) === tried.outage && at === tried.at + CALLED_WITHIN_S;
        if (isLate && said !== 'unreachable') counts.calledLate += 1;
        const isClosed = closedUntil(kitchen, at) > 0;
        const isSame = isClosed === closedUntil(kitchen, at - CHANGED_WITHIN_S) > 0;
        if (isSame && isClosed !== (said === 'closed')) counts.closedWrongly += 1;
      }
    }
  } finally {
    await pool.end();
    await postgres.stop();
  }
  const shortOutages = [...kitchens.values()].flatMap(({ outages }) => outages).filter(isShort).length;
  const { called, calledWrongly, calledLate, closedWrongly } = counts;
  const complaints = [
    ...(calledWrongly > (1 - RIGHT) * called ? ['too many kitchens were called unreachable that could answer'] : []),
    ...(calledLate > 0 ? [`${calledLate} kitchens were called unreachable too late`] : []),
    ...(shortCalled.size > SHORT_CALLED * shortOutages ? ['too many short outages made a kitchen unreachable'] : []),
    ...(closedWrongly > 0 ? ['kitchens were not closed or open as was said'] : []),
    ...(called === 0 ? ['no kitchen was called unreachable'] : []),
  ];
  return { hours: (KITCHENS * END_S) / 3_600, ...counts, shortOutages, shortCalled: shortCalled.size, complaints };
}

const spanAt = (spans: readonly Span[], at: number): Span | undefined =>
  spans.find(([from, until]) => from <= at && at < until);
const isShort = ([from, until]: Span): boolean => until - from <= SHORT_S;
/** When a closed kitchen opens. 0 if it is open. */
const closedUntil = ({ closings, pauses }: Pick<Kitchen, 'closings' | 'pauses'>, at: number): number =>
  Math.max(spanAt(closings, at)?.[1] ?? 0, spanAt(pauses, at)?.[1] ?? 0);

/** A call for an order that has just ended, or no call (without an outcome) because its kitchen is closed. */
type Call = { id: string; at: string; state: string; attempt: number; outcome?: string; status?: number; dueS: number };

function drawWorld(seed: number) {
  const draw = (...about: (string | number)[]): number => chance(seed, ...about);
  /** @param everyS the mean time between two spans @param lengthS the length of a span, by a number from 0 to 1 */
  const drawSpans = (what: string, id: string | number, everyS: number, lengthS: (by: number) => number): Span[] => {
    const spans: Span[] = [];
    for (let from = 0; ;) {
      const nth = spans.length;
      from += 1 - Math.log(1 - draw(what, id, 'gap', nth)) * everyS;
      if (from >= END_S) return spans;
      spans.push([from, (from += lengthS(draw(what, id, 'length', nth)))]);
    }
  };
  const slow = Array.from({ length: VENDORS }, (_, vendor) =>
    drawSpans('slow', vendor, 120 * MINUTE_S, (by) => (5 + 10 * by) * MINUTE_S),
  );
  const kitchens = new Map<string, Kitchen>();
  for (let nth = 0; nth < KITCHENS; nth += 1) {
    const id = `kitchen-${nth}`;
    kitchens.set(id, {
      id,
      vendor: nth % VENDORS,
      // Three of four outages are short.
      outages: drawSpans('outage', id, 40 * MINUTE_S, (by) =>
        by < 0.75 ? 10 + (SHORT_S - 10) * (by / 0.75) : (1 + 76 * (by - 0.75)) * MINUTE_S,
      ),
      closings: drawSpans('closing', id, 120 * MINUTE_S, (by) => (3 + 57 * by) * MINUTE_S),
      pauses: drawSpans('pause', id, 240 * MINUTE_S, (by) => (3 + 57 * by) * MINUTE_S),
      arrivals: drawSpans('order', id, 2 * MINUTE_S, () => 0),
      orders: [],
      missed: [],
      tried: undefined,
      said: 'open',
    });
  }
  const isSlow = ({ vendor }: Kitchen, at: number): boolean => spanAt(slow[vendor] ?? [], at) !== undefined;
  /** Whether the POS itself would answer in time. */
  const couldAnswer = (kitchen: Kitchen, at: number, withinS: number): boolean => {
    if (spanAt(kitchen.outages, at) !== undefined) return false;
    if (!isSlow(kitchen, at)) return true;
    return -Math.log(1 - draw('answer', kitchen.id, Math.floor(at / SAME_S))) * SLOW_S < withinS;
  };
  /** Whether a call or a probe has an answer, and remembers what that shows. */
  const reach = (kitchen: Kitchen, at: number, what: 'probe' | 'call', isUnfit = false): boolean => {
    const could = couldAnswer(kitchen, at, what === 'probe' ? PROBE_S : CALL_S);
    const isLost = draw('lost', what, kitchen.id, at) < (isSlow(kitchen, at) ? LOST_SLOW : LOST);
    const isAnswered = could && !isLost && !isUnfit;
    if (isAnswered) kitchen.missed = [];
    else if (what === 'probe' || kitchen.vendor === WITHOUT_CHECK) kitchen.missed.push(could);
    return isAnswered;
  };
  const call = (kitchen: Kitchen, order: Order, at: number): Call => {
    const about = { id: order.id, at: kitchen.id, attempt: order.tries + 1 };
    const opens = closedUntil(kitchen, at);
    if (opens > 0) {
      order.deadline += opens - at;
      order.due = opens;
      return { ...about, state: 'held', dueS: 30 };
    }
    order.tries += 1;
    const outage = spanAt(kitchen.outages, at);
    const status = order.isUnfit && outage === undefined ? { status: 500 } : {};
    if (reach(kitchen, at, 'call', order.isUnfit)) return { ...about, state: 'sent', outcome: 'placed', dueS: 0 };
    if (outage && kitchen.tried?.outage !== outage) kitchen.tried = { outage, at };
    // As the service waits.
    order.due = at + Math.max(STEP_S, Math.min(60, 2 ** (order.tries - 1) / 2) * draw('wait', order.id, order.tries));
    const state = order.due > order.deadline ? 'failed' : 'waiting';
    return { ...about, ...status, state, outcome: 'TryAgain', dueS: order.due - at };
  };
  return {
    kitchens,
    reach,
    /** Calls the POS for all orders that are due. */
    sell(kitchen: Kitchen, at: number): Call[] {
      // While it is closed, nobody calls, so the minute begins again when it opens.
      if (closedUntil(kitchen, at) > 0) kitchen.tried = undefined;
      while ((kitchen.arrivals[0]?.[0] ?? END_S) <= at) {
        const id = `order-${kitchen.id}-${kitchen.arrivals.shift()?.[0]}`;
        kitchen.orders.push({ id, due: at, deadline: at + 1_800, tries: 0, isUnfit: draw('unfit', id) < UNFIT });
      }
      const calls = kitchen.orders.filter(({ due }) => due <= at).map((order) => call(kitchen, order, at));
      const ended = new Set(calls.filter(({ state }) => /sent|failed/.test(state)).map(({ id }) => id));
      kitchen.orders = kitchen.orders.filter(({ id }) => !ended.has(id));
      return calls;
    },
  };
}

/** Adds the locations, and stops the clock of the database. */
async function prepare(pool: pg.Pool, kitchens: ReadonlyMap<string, Kitchen>, providers: Provider[]) {
  const keys = parseSettingsKeys(`chaos:${Buffer.alloc(32, 7).toString('base64')}`);
  const registry = new Map(providers.map((each) => [each.integration, each]));
  const rules = { registry, keys, publicUrl: undefined, allowedHosts };
  for (const { id, vendor } of kitchens.values()) {
    const integration = vendor === WITHOUT_CHECK ? 'without check' : 'probed';
    await putLocation(pool, rules, { locationId: id, integration, settings: { id } });
  }
  await pool.query(`CREATE OR REPLACE FUNCTION clock.now() RETURNS timestamptz STABLE LANGUAGE sql AS
    $$SELECT current_setting('chaos.now')::timestamptz$$`);
  return {
    pool,
    registry,
    decryptSettings: settingsDecrypter(rules),
    now: () => new Date(),
    credentialsFor: credentialStore(pool, keys),
    posFetch: fetch,
    silentLocations: () => [],
  };
}

const CLOSE = `UPDATE locations SET pos_paused_at = coalesce(pos_paused_at, now()),
  pos_paused_until = now() + make_interval(secs => $2) WHERE location_id = $1`;

const CALL = `
  WITH call AS (
    SELECT * FROM jsonb_to_recordset($1)
      AS c(id text, at text, state text, attempt int, outcome text, status int, "dueS" float8)
  ), placed AS (
    INSERT INTO placements AS p
      (service_order_id, location_id, state, deadline_at, attempts, requested_at, next_attempt_at, finished_at)
    SELECT id, at, state, 'infinity', attempt, now(), now() + make_interval(secs => "dueS"),
           CASE WHEN state IN ('sent', 'failed') THEN now() END
    FROM call
    ON CONFLICT (service_order_id) DO UPDATE
    SET state = excluded.state, attempts = excluded.attempts, requested_at = excluded.requested_at,
        next_attempt_at = excluded.next_attempt_at, finished_at = excluded.finished_at
  )
  INSERT INTO placement_attempts (service_order_id, attempt, call, ended_at, outcome, http_status)
  SELECT id, attempt, 'createOrder', now(), outcome, status FROM call WHERE outcome IS NOT NULL`;
