/** An evening of five clubs, for a console with something to show. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { FulfillmentType, Status } from '../../src/core/domain/lifecycle.ts';
import { countLatency, noLatencies } from '../../src/core/traffic/count-traffic.ts';
import type { CanonicalOrder } from '../../src/core/domain/order.ts';
import type { Provider } from '../../src/core/domain/provider.ts';
import { newSettingsOf } from '../../src/core/locations/locations.ts';
import { standard } from '../../src/providers/standard/index.ts';
import { blind } from '../../world/pos/pos-without-deduplication.ts';
import { startPos, type Pos, type PosFault } from '../../world/pos/start-pos.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import type { System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';
import { repeatably } from '../support/repeatably.ts';

/** They all speak our own words; on the pictures they bear the names of what clubs have. */
const named = (provider: Provider<never>, integration: string, title: string): Provider => {
  const settings = newSettingsOf(provider).meta({ title });
  return { ...(provider as Provider), integration, settings, newSettings: settings };
};
export const FRIDAY_PROVIDERS: Provider[] = [
  named(standard as Provider<never>, 'hubrise', 'HubRise'),
  named(standard as Provider<never>, 'square', 'Square'),
  named(standard as Provider<never>, 'toast', 'Toast'),
  named(blind as Provider<never>, 'lightspeed-k', 'Lightspeed K'),
];

/** The platform's ids of the clubs. */
export const HARBOUR = '0b6c1a52-7d1f-4f0e-9a41-2f6d8c3e5b10';
export const LAKESIDE = '3e9f7c04-51ab-4c8d-8e27-91d0b6a4f732';
const MILL = '7a20d5e8-c3b4-46f9-b1d6-04e8f7293c6a';
const ROOFTOP = 'a41be8d3-9f60-4d25-83c7-5be1907f2d48';
const GARDEN = 'f5d83a96-2e7c-4b01-a6f8-c09d4517e3b2';
const CLUBS = {
  [HARBOUR]: { integration: 'hubrise', name: 'Harbour Club, Hamburg' },
  [LAKESIDE]: { integration: 'square', name: 'Lakeside Grill' },
  [MILL]: { integration: 'toast', name: 'Old Mill' },
  [ROOFTOP]: { integration: 'lightspeed-k', name: 'Rooftop Bar' },
  [GARDEN]: { integration: 'standard', name: 'Garden Terrace' },
} as const;
export type Club = keyof typeof CLUBS;
/** What nobody should see where there are names. */
export const FRIDAY_IDS: readonly string[] = [
  ...Object.keys(CLUBS),
  ...Object.values(CLUBS).map(({ integration }) => integration),
];
export const clubName = (club: Club): string => CLUBS[club].name;

const LIFE: readonly Status[] = ['received', 'in_progress', 'ready', 'en_route', 'completed'];
/** Minutes that an order usually takes to come to each. */
const TAKES: Record<string, number> = { received: 1, in_progress: 4, ready: 17, en_route: 20, completed: 31 };
const MENU = [
  ['Classic Burger', 1290],
  ['Margherita', 990],
  ['Tagliatelle al ragù', 1350],
  ['Sea bass, fennel', 2190],
  ['Caesar Salad', 1090],
  ['Sweet Potato Fries', 450],
  ['Crème brûlée', 690],
  ['Pale Ale 0.33 l', 480],
] as const;
const MEMBERS = ['Ada Lovelace', 'Grace Hopper', 'Alan Turing', 'Katherine Johnson', 'Edsger Dijkstra'];

const RIGHT = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
const WRONG = `whsec_${Buffer.alloc(24, 2).toString('base64')}`;

/** The ids that a test looks for. */
export type Friday = {
  ids: Record<'doubtful' | 'conflicting' | 'refused' | 'held' | 'cooking' | 'done' | 'retried', string>;
  /** Whose webhooks do not verify. */
  misconfigured: Club;
  /** Settings that would verify them. */
  rightSettings: { ordersUrl: string; secret: string };
  silent: Club;
  /** Traffic as on such a day: what was really counted is written later, and would stand out. */
  seedTraffic(): Promise<void>;
  stop(): Promise<void>;
};

const SILENT_MINUTES = 24;

type Step = { minutesAgo: number; action: () => Promise<unknown> };

/**
 * Spends it in some seconds, with real signals, tickets and webhooks, and then moves each step to when it would have been.
 * Of `startSystem` it needs FRIDAY_PROVIDERS.
 */
export async function spendFridayNight(system: System): Promise<Friday> {
  const clubs = Object.keys(CLUBS) as Club[];
  const faults = new Map<string, PosFault>();
  const types = new Map<string, FulfillmentType>();
  const { poses, webhooks } = await openClubs(system, clubs, faults);
  const posOf = (club: Club): Pos => poses.get(club) as Pos;
  const steps: Step[] = [];
  let number = 20_400;
  const random = repeatably(7);
  const place = (
    club: Club,
    minutesAgo: number,
    about: { fault?: PosFault; wantedIn?: number; type?: FulfillmentType } = {},
  ): string => {
    const { fault, wantedIn, type = random() < 0.3 ? 'delivery' : 'pickup' } = about;
    const serviceOrderId = `F-${(number += 1 + Math.floor(random() * 3))}`;
    const order = orderOf({ serviceOrderId, club, type, wantedIn, random });
    types.set(serviceOrderId, type);
    if (fault !== undefined) faults.set(serviceOrderId, fault);
    steps.push({
      minutesAgo,
      async action() {
        await system.placeOrder(order);
        await until(async () => {
          const placement = await system.placement(serviceOrderId);
          return fault === undefined
            ? placement?.['state'] === 'sent'
            : Number(placement?.['failures']) > 0 || placement?.['state'] !== 'waiting';
        });
      },
    });
    return serviceOrderId;
  };
  const report = (club: Club, serviceOrderId: string, status: Status, minutesAgo: number, reason?: string): void => {
    const action = (): Promise<unknown> =>
      posOf(club).sendStatus(webhooks.get(club) ?? '', {
        serviceOrderId,
        status: status.toUpperCase(),
        ...(reason !== undefined && { reason }),
      });
    steps.push({ minutesAgo, action });
  };
  /** One that has come as far as somewhere, all at its usual pace. */
  const goes = (
    club: Club,
    minutesAgo: number,
    about: { to?: Status; type?: FulfillmentType; wantedIn?: number; fault?: PosFault } = {},
  ): string => {
    const id = place(club, minutesAgo, about);
    for (const status of LIFE) {
      const at = minutesAgo - (TAKES[status] ?? 0) * (0.8 + random() * 0.4);
      if (at <= 0 || about.to === undefined) break;
      if (status !== 'en_route' || types.get(id) === 'delivery') report(club, id, status, at);
      if (status === about.to) break;
    }
    return id;
  };

  const busy: readonly Club[] = [HARBOUR, LAKESIDE, MILL];
  const pick = (nth: number): Club => busy[nth % busy.length] as Club;
  const done = Array.from({ length: 22 }, (_, nth) => goes(pick(nth), 150 - nth * 5, { to: 'completed' }));
  Array.from({ length: 6 }, (_, nth) => goes(pick(nth), 28 - nth, { to: 'en_route', type: 'delivery' }));
  Array.from({ length: 9 }, (_, nth) => goes(pick(nth), 25 - nth, { to: 'ready', ...(nth === 2 && { wantedIn: -4 }) }));
  const cooking = Array.from({ length: 15 }, (_, nth) =>
    goes(pick(nth + 1), 13 - nth * 0.4, { to: 'in_progress', wantedIn: nth < 3 ? -7 + nth * 2 : 9 + nth }),
  );
  Array.from({ length: 10 }, (_, nth) => goes(pick(nth), 5 - nth * 0.3, { to: 'received', wantedIn: 18 + nth }));
  Array.from({ length: 6 }, (_, nth) => goes(pick(nth + 2), 1.2 - nth * 0.15, { wantedIn: 25 }));
  Array.from({ length: 3 }, (_, nth) => place(MILL, 0.9 - nth * 0.2, { fault: { status: 503 }, wantedIn: 30 }));

  const retried = goes(MILL, 33, { to: 'ready', type: 'delivery', wantedIn: 4, fault: { status: 503 } });
  steps.push({
    minutesAgo: 32.95,
    async action() {
      faults.delete(retried);
      await system.query('UPDATE placements SET next_attempt_at = now() WHERE service_order_id = $1', [retried]);
      await until(async () => (await system.placement(retried))?.['state'] === 'sent');
    },
  });
  const doubtful = place(ROOFTOP, 9, { fault: 'drop-answer' });
  goes(ROOFTOP, 70, { to: 'completed' });
  Array.from({ length: 4 }, (_, nth) => goes(ROOFTOP, SILENT_MINUTES - nth * 3));
  const refused = place(HARBOUR, 16, {
    fault: { status: 422, body: { reason: 'The kitchen closes at eight.' } },
  });
  const held = place(LAKESIDE, 6, { fault: { status: 404 }, wantedIn: 20 });
  const conflicting = goes(LAKESIDE, 48, { to: 'completed' });
  report(LAKESIDE, conflicting, 'cancelled', 3, 'Member never came');
  const unheard = Array.from({ length: 5 }, (_, nth) => goes(GARDEN, 19 - nth * 2));
  steps.push({
    minutesAgo: 8,
    action: () =>
      system.addLocation(GARDEN, { ordersUrl: posOf(GARDEN).ordersUrl, secret: WRONG }, 'standard', clubName(GARDEN)),
  });
  for (const [nth, id] of unheard.entries()) report(GARDEN, id, 'received', 4 - nth * 0.5);

  steps.push({ minutesAgo: 0, action: () => untilHeard(system) });

  await spend(system, steps);
  await writeTroubles(system, done[0] ?? '', HARBOUR);
  await seedTraffic(system, clubs);
  return {
    ids: { doubtful, conflicting, refused, held, cooking: cooking[0] ?? '', done: done[0] ?? '', retried },
    misconfigured: GARDEN,
    rightSettings: { ordersUrl: posOf(GARDEN).ordersUrl, secret: RIGHT },
    silent: ROOFTOP,
    seedTraffic: () => seedTraffic(system, clubs),
    async stop() {
      await Promise.all([...poses.values()].map((pos) => pos.stop()));
    },
  };
}

/** Opens the clubs, each with a POS that has the faults of its orders. */
async function openClubs(system: System, clubs: readonly Club[], faults: ReadonlyMap<string, PosFault>) {
  const poses = new Map<Club, Pos>();
  const webhooks = new Map<Club, string>();
  for (const club of clubs) {
    const pos = await startPos(club === GARDEN ? { secret: RIGHT } : {});
    pos.behave = ({ order }) => faults.get(order.serviceOrderId);
    poses.set(club, pos);
    const secret = club === GARDEN ? { secret: RIGHT } : { unsigned: true };
    const { integration, name } = CLUBS[club];
    await system.addLocation(club, { ordersUrl: pos.ordersUrl, ...secret }, integration, name);
    webhooks.set(club, await system.webhookUrl(club));
  }
  return { poses, webhooks };
}

/**
 * The time at which a location was last heard is stored periodically: later, it would be the current time. It is found by
 * the process's own clock, from which a busy machine's clock may differ by a part of the period.
 */
async function untilHeard(system: System): Promise<void> {
  await until(async () => {
    const unwritten = await system.query(
      `SELECT FROM webhooks d WHERE location_id = '${ROOFTOP}' AND NOT EXISTS (
         SELECT FROM location_last_seen h WHERE h.location_id = d.location_id AND h.last_seen_at >= d.received_at - interval '2 s'
       ) LIMIT 1`,
    );
    return unwritten.length === 0;
    // It is written every ten seconds.
  }, 60_000);
}

function orderOf(about: {
  serviceOrderId: string;
  club: Club;
  type: FulfillmentType;
  /** Minutes from now. */
  wantedIn: number | undefined;
  random: () => number;
}): CanonicalOrder {
  const { serviceOrderId, club, type, wantedIn, random } = about;
  const sample = sampleOrder({ type });
  const requestedAt =
    wantedIn === undefined ? {} : { requestedAt: new Date(Date.now() + wantedIn * 60_000).toISOString() };
  const items = Array.from({ length: 1 + Math.floor(random() * 3) }, () => {
    const [name, unitPrice] = MENU[Math.floor(random() * MENU.length)] ?? MENU[0];
    return {
      serviceItemId: name.toLowerCase().replaceAll(/\W+/g, '-'),
      name,
      quantity: 1 + Math.floor(random() * 2),
      unitPrice,
      ageRestricted: name.startsWith('Pale Ale'),
      modifiers: [],
    };
  });
  const subtotal = items.reduce((sum, { quantity, unitPrice }) => sum + quantity * unitPrice, 0);
  const tax = Math.round(subtotal * 0.19);
  return {
    ...sample,
    serviceOrderId,
    locationId: club,
    member: { ...sample.member, name: MEMBERS[Math.floor(random() * MEMBERS.length)] ?? '' },
    fulfillment: { ...sample.fulfillment, ...requestedAt },
    items,
    money: { subtotal, tax, tip: 200, fee: 0, total: subtotal + tax + 200, currency: 'EUR' },
  };
}

/** Between two steps, so that everything of a step lies between its beginning and the next one's. */
const APART_MS = 3;

/** Takes the steps one after the other, as fast as they go, and then moves each to its time. */
async function spend(system: System, steps: Step[]): Promise<void> {
  const began: { at: number; minutesAgo: number }[] = [];
  for (const { minutesAgo, action } of steps.toSorted((a, b) => b.minutesAgo - a.minutesAgo)) {
    await sleep(2 * APART_MS);
    began.push({ at: Date.now() - APART_MS, minutesAgo });
    await action();
    await until(async () => (await system.query('SELECT FROM outbox LIMIT 1')).length === 0);
  }
  const end = Date.now();
  const columns = await system.query(
    `SELECT format(
       'UPDATE %I t SET %s', c.table_name,
       string_agg(format('%1$I = %1$I + coalesce((SELECT by FROM moved WHERE t.%1$I >= since AND t.%1$I < till), ''0'')', c.column_name), ', ')
     ) AS sql
     FROM information_schema.columns c JOIN information_schema.tables b USING (table_schema, table_name)
     WHERE c.table_schema = 'expediter' AND c.data_type = 'timestamp with time zone' AND b.table_type = 'BASE TABLE'
       AND c.table_name NOT LIKE 'webhooks\\_%' AND c.column_name NOT IN ('next_attempt_at', 'lease_until', 'expires_at', 'minute')
       AND NOT (c.table_name = 'orders' AND c.column_name = 'requested_at')
     GROUP BY c.table_name`,
  );
  await system.query('CREATE TABLE moved (since timestamptz, till timestamptz, by interval)');
  await system.query(
    `INSERT INTO moved
     SELECT to_timestamp(b.at / 1000), to_timestamp(lead(b.at, 1, $3::float8) OVER (ORDER BY b.at) / 1000),
            make_interval(secs => ($3::float8 - b.at) / 1000 - b.ago * 60)
     FROM unnest($1::float8[], $2::float8[]) AS b(at, ago)`,
    [began.map(({ at }) => at), began.map(({ minutesAgo }) => minutesAgo), end],
  );
  for (const { sql } of columns) await system.query(String(sql));
  await system.query('DROP TABLE moved');
}

/** Rows as earlier versions wrote them, with codes of all kinds. */
async function writeTroubles(system: System, serviceOrderId: string, club: Club): Promise<void> {
  const url = 'POST http://10.0.0.7/orders';
  const errors = [
    `${url}: UND_ERR_SOCKET: no answer`,
    `${url}: DEPTH_ZERO_SELF_SIGNED_CERT: no connection`,
    `${url}: EBRANDNEW: no connection`,
    'the POS could not be reached: GET http://10.0.0.7/status: ECONNREFUSED: no connection',
    'the POS refused the order with INVALID_VALUE about line_items.0.unitPrice: check ordersUrl and PUBLIC_URL',
    'unexpected TypeError',
  ];
  await system.query(
    `INSERT INTO placement_attempts (service_order_id, attempt, call, ended_at, outcome, error)
     SELECT $1, 100 + nth, 'createOrder', clock_timestamp(), 'TryAgain', error
     FROM unnest($2::text[]) WITH ORDINALITY AS e (error, nth)`,
    [serviceOrderId, errors],
  );
  const acts: readonly (readonly [action: string, before: string | null, after: string, subject?: string])[] = [
    [
      'change',
      '{"settings.secret":"set","groups":"[\\"nord\\"]"}',
      '{"settings.secret":"changed","groups":"[\\"nord\\",\\"quay\\"]"}',
    ],
    ['put', '{"settings.ordersUrl":null}', '{"settings.ordersUrl":"https://pos.example.com/orders"}'],
    ['take case', 'nobody', 'Ada'],
    ['take case', 'Ada', 'Grace'],
    ['snooze', 'in_doubt', new Date(Date.now() + 1_800_000).toISOString()],
    ['resolve', 'in_doubt', 'there'],
    ['conclude cancel', 'sent/by_phone', 'sent/refused'],
    ['put application', null, 'changed clientId, clientSecret', 'vendor-eu'],
    [
      'give roles',
      null,
      '0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11 ada@example.com: viewer,operator at ' + [HARBOUR, MILL].join(),
    ],
    ['be refused', null, 'missing_role', 'PUT /locations/:locationId'],
    ['bake_order', 'in_doubt', '{"a":1}'],
  ];
  await system.query(
    `WITH acts AS (SELECT * FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS a (act, nth)), begun AS (
       INSERT INTO audit (actor_kind, actor_id, actor_name, action, location_id, service_order_id, before, subject)
       SELECT 'nobody', 'answer link', 'contact: Kitchen at Harbour Club', act ->> 0, $2, $3, act ->> 1, act ->> 3
       FROM acts ORDER BY nth RETURNING audit_id
     )
     INSERT INTO audit_outcomes (audit_id, outcome, after)
     SELECT audit_id, 'done', act ->> 2 FROM (SELECT audit_id, row_number() OVER (ORDER BY audit_id) AS nth FROM begun) AS b
     JOIN acts USING (nth)`,
    [JSON.stringify(acts), club, serviceOrderId],
  );
  await system.query(
    `INSERT INTO notices (service_order_id, reason, since, step, location_id, contact, answer, answered_at)
     VALUES ($1, 'in_doubt', now(), 'email', $2, '{"name": "Kitchen", "email": "kitchen@example.com", "via": "email"}', 'there', now())`,
    [serviceOrderId, club],
  );
}

/** A day of it: most at noon and in the evening. */
async function seedTraffic(system: System, clubs: readonly Club[]): Promise<void> {
  const random = repeatably(11);
  const rows: (readonly [string, number, string, string, string, number, string | null])[] = [];
  for (let ago = 24 * 60; ago >= 0; ago -= 1) {
    const hour = (((20 - ago / 60) % 24) + 24) % 24;
    const busy = 0.15 + Math.exp(-(((hour - 12.5) / 1.6) ** 2)) * 0.7 + Math.exp(-(((hour - 19.8) / 2.2) ** 2));
    for (const [nth, club] of clubs.entries()) {
      if (club === ROOFTOP && ago < SILENT_MINUTES) continue;
      const { integration } = CLUBS[club];
      const webhooks = Math.round(busy * (14 - nth * 2) * (0.7 + random() * 0.6));
      const bad = club === GARDEN && ago < 8 ? 6 : random() < 0.03 ? 1 : 0;
      const counted = [
        ['webhook', 'applied', webhooks],
        ['webhook', 'duplicate', Math.round(webhooks * 0.08 * random())],
        ['webhook', 'ignored', Math.round(webhooks * 0.1 * random())],
        ['webhook', 'dropped', bad],
        ['placement', 'sent', Math.round(webhooks / 4)],
        ['live', 'published', webhooks],
      ] as const;
      for (const [what, outcome, count] of counted) {
        if (count === 0) continue;
        const usual = what === 'live' ? 9 : 300 * (1 + nth * 0.4) * (0.8 + busy * 0.5);
        const latencies = what === 'webhook' ? null : spread(count, usual, random);
        for (const location of ['', club]) rows.push([location, ago, integration, what, outcome, count, latencies]);
      }
    }
  }
  await system.query(
    // The service counts along meanwhile.
    `WITH gone AS (DELETE FROM traffic)
     INSERT INTO traffic (location_id, minute, integration, what, outcome, count, latencies)
     SELECT t.location, date_trunc('minute', now()) - make_interval(mins => t.ago), t.integration, t.what, t.outcome, t.count,
            t.latencies::int[]
     FROM unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::text[], $6::int[], $7::text[])
       AS t(location, ago, integration, what, outcome, count, latencies)
     ON CONFLICT (location_id, minute, integration, what, outcome)
       DO UPDATE SET count = excluded.count, latencies = excluded.latencies`,
    [0, 1, 2, 3, 4, 5, 6].map((column) => rows.map((row) => row[column])),
  );
}

/** So many latencies around a usual one, in milliseconds, as an array of Postgres. */
function spread(count: number, usual: number, random: () => number): string {
  const latencies = noLatencies();
  for (let i = 0; i < count; i += 1)
    countLatency(latencies, usual * Math.exp((random() + random() + random() - 1.5) * 1.2));
  return `{${latencies.join()}}`;
}
