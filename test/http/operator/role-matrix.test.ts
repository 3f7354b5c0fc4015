/** Who may what, at both doors: every route, role and scope; and thousands of requests that nobody thought of. */
import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { uuidV7 } from '../../../src/core/domain/uuid-v7.ts';
import { startSession } from '../../../src/core/operators/operator-sessions.ts';
import { digest } from '../../../src/core/operators/find-operator.ts';
import { ROLES, type NeededRole, type Right } from '../../../src/core/operators/operator.ts';
import type { Access } from '../../../src/operators/operation.ts';
import { ACCESS, API_PATH, FOR_PROGRAMS } from '../../../src/operators/registry.ts';
import { OPERATOR_TOKEN } from '../../../world/system/ask-operator.ts';
import { SETTINGS, bodiesAt } from '../../support/bodies-of-routes.ts';
import { OWN_PAGE, giveRoles, logIn, nameToken } from '../../../world/system/log-in.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import { SEED } from '../../../world/inputs/seed.ts';
import { statusWebhook } from '../../../world/pos/status-webhook.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { repeatably } from '../../support/repeatably.ts';
import { until } from '../../../world/processes/until.ts';

/** CALLS=10000 for more of them. */
const CALLS = Number(process.env['CALLS'] ?? 2_000);
vi.setConfig({ testTimeout: 180_000 + 60 * CALLS });

/** Every id of a place begins with its name, and what is its members' is named after it. */
const PLACES = ['west', 'east'] as const;
/** Its groups change hands while the calls at random run. */
const SWAP = 'swap';
type Place = (typeof PLACES)[number] | typeof SWAP;
const secretOf = (place: Place): string => `the member of ${place}`;
/** The groups of each place, and of the locations that are created here. */
const GROUPS: Record<string, readonly string[]> = {
  west: ['both', 'g-west', 'pair'],
  east: ['both', 'g-east'],
  'g-west:fresh': ['g-west'],
};
/** The groups of `swap`: these and one of the hands. */
const OF_SWAP = ['both', 'pair'];
const HANDS = ['g-other', 'g-west'] as const;
/** Each hand, from when the change to it began until the change to the next one had ended. Both count while it changes. */
const held: { hand: string; from: number; until: number }[] = [];
/** What was counted at all locations together, and at one. */
const COUNTED = { all: 987_654, west: 765_432, east: 543_219, swap: 321_987 };

const BODIES = bodiesAt('west', GROUPS['west']);
/** Of somebody else. */
const SESSION = randomUUID();
/** They are asked about an id that there is not. */
const isOfNone = (route: string): boolean =>
  /^(POST \/operators\/(tokens|grants)|DELETE \/(applications|signal-tokens))\/:/.test(route);

type Actor = { name: string; rights: readonly Right[]; headers: Record<string, string>; prefix: string };
type Asked = { route: string; path: string; body?: unknown; method?: string; headers?: Record<string, string> };
type Answered = { status: number; text: string };

let stage: Stage;
let url: string;
/** Kept, and opened for each actor: one for each door. */
const actors: Actor[] = [];
const nobody: Actor[] = [
  { name: 'nobody', rights: [], headers: {}, prefix: API_PATH },
  { name: 'nobody', rights: [], headers: OWN_PAGE, prefix: '/console/api' },
];
const ids: Record<Place, { orders: string[]; webhooks: string[]; tokens: string[] }> = {
  west: { orders: [], webhooks: [], tokens: [] },
  east: { orders: [], webhooks: [], tokens: [] },
  swap: { orders: [], webhooks: [], tokens: [] },
};
const agent = new Agent({ keepAlive: true, maxSockets: 16 });
let leave: () => void = () => {};

beforeAll(async () => {
  stage = await startStage({ env: { OPERATOR_TOKEN, PUBLIC_URL: 'http://127.0.0.1:9' } });
  url = await stage.listen();
  for (const place of PLACES) await plant(place);
  await stage.query(`INSERT INTO placements (service_order_id, state, deadline_at, next_attempt_at)
                      VALUES ('nowhere-1', 'held', now() + interval '1 day', 'infinity')`);
  for (const [place, count] of Object.entries(COUNTED)) {
    const location = place === 'all' ? '' : place;
    await stage.query(
      `INSERT INTO traffic (location_id, minute, integration, what, outcome, count)
       VALUES ($1, date_trunc('minute', now()) - interval '10 min', 'standard', 'webhook', 'stale', $2)`,
      [location, count],
    );
    await stage.query(
      `INSERT INTO scorecard_hours (location_id, integration, hour, orders, acceptance, missing, duplicates, late, conflicts,
                                    refusals, down_minutes)
       VALUES ($1, 'standard', date_bin('1 h', now(), 'epoch'), $2, '{}', 0, 0, 0, 0, '{}', 0)`,
      [location, count],
    );
  }
  await stage.query(
    `INSERT INTO operator_sessions (session_id, sha256, kind, actor_id, name, expires_at)
     VALUES ($1, '\\x00', 'person', 'somebody else', 'somebody else', now() + interval '1 h')`,
    [SESSION],
  );
  for (const roles of [...ROLES.map((role) => [role]), [...ROLES]]) {
    const name = roles.length > 1 ? 'all roles' : roles[0];
    await admit(`${name} at all`, right(roles, null));
    for (const place of PLACES) await admit(`${name} at ${place}`, right(roles, [place]));
    await admit(`${name} at the group of west`, right(roles, [], ['g-west']));
  }
  // What needs attention is looked for while somebody watches.
  const board = await follow('/live');
  leave = board.leave;
  await until(() => board.text().includes('event: attention'));
});
afterAll(async () => {
  leave();
  agent.destroy();
  await stage?.stop();
});

async function plant(place: Place): Promise<void> {
  await stage.addLocation(place, SETTINGS);
  await stage.query('UPDATE locations SET groups = $2 WHERE location_id = $1', [place, GROUPS[place] ?? OF_SWAP]);
  const webhookUrl = await stage.webhookPath(place);
  const { orders, tokens } = ids[place];
  for (const [nth, state] of ['sent', 'in_doubt', 'held', 'sent'].entries()) {
    const serviceOrderId = `${place}-${nth}`;
    orders.push(serviceOrderId);
    const contents = { ...sampleOrder({ serviceOrderId, locationId: place }), note: secretOf(place) };
    await stage.seedOrder({ serviceOrderId, locationId: place, providerOrderId: `${place}-pos-${nth}`, contents });
    if (state === 'sent') continue;
    await stage.query(
      `UPDATE placements SET state = $2, finished_at = NULL, next_attempt_at = 'infinity', deadline_at = now() + interval '1 day'
       WHERE service_order_id = $1`,
      [serviceOrderId, state],
    );
  }
  for (const about of [
    { serviceOrderId: `${place}-0` },
    { providerOrderId: `${place}-pos-3` },
    { serviceOrderId: `${place}-none` },
  ]) {
    for (const status of ['READY', 'NONSENSE']) {
      const body = { ...statusWebhook({ ...about, status }), note: secretOf(place) };
      expect((await stage.post(webhookUrl, body)).status).toBe(200);
    }
  }
  for (const row of await stage.query('SELECT token_id FROM webhook_tokens WHERE location_id = $1', [place])) {
    tokens.push(String(row['token_id']));
  }
  ids[place].webhooks = await webhooksOf(place);
}

async function webhooksOf(place: Place): Promise<string[]> {
  return (await stage.query('SELECT id FROM webhooks WHERE location_id = $1', [place])).map(({ id }) => String(id));
}

/** Lets somebody in with a token, by both doors. */
async function admit(name: string, right: Right): Promise<void> {
  const token = await nameToken(stage, name, right.roles, right.locations, right.locationGroups);
  const rights = [right];
  actors.push(
    { name, rights, headers: { authorization: `Bearer ${token}` }, prefix: API_PATH },
    { name, rights, headers: { ...OWN_PAGE, cookie: await logIn(url, token) }, prefix: '/console/api' },
  );
}

/** The same with different roles at different locations, as only a person has them. */
async function admitPerson(name: string, rights: readonly Right[]): Promise<Actor> {
  const email = `${name.replaceAll(' ', '.')}@example.com`;
  for (const { roles, locations, locationGroups } of rights) {
    await giveRoles(stage, { email }, roles, locations, locationGroups);
  }
  const who = { kind: 'person', id: name, name, email, source: '127.0.0.1', userAgent: undefined } as const;
  const value = await startSession(stage.pool, who);
  const [named] = (await logIn(url)).split('=');
  return { name, rights, headers: { ...OWN_PAGE, cookie: `${named}=${value}` }, prefix: '/console/api' };
}

/**
 * @returns the answer, asked for again while it is a 503, as a client does; of a live stream what it says at first; of the
 *   stream of an operation everything, and the status of the problem if it failed after the stream had begun
 */
async function ask(actor: Actor, asked: Asked): Promise<Answered> {
  const giveUpAt = performance.now() + 60_000;
  for (;;) {
    const answered = await askOnce(actor, asked);
    if (answered.status !== 503 || performance.now() > giveUpAt) return answered;
    await sleep(100);
  }
}

function askOnce({ headers, prefix }: Actor, asked: Asked): Promise<Answered> {
  const { route, method = 'GET', path, body, headers: more } = asked;
  const door = prefix === API_PATH && route in FOR_PROGRAMS ? '' : prefix;
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const sending = typeof body === 'string' || body === undefined ? body : JSON.stringify(body);
    // Node adds the length itself, except to DELETE.
    const type = sending !== undefined && {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(sending)),
    };
    const about = { method, headers: { ...type, ...more, ...headers }, agent };
    const sent = request({ hostname, port, path: door + path, ...about });
    sent.on('error', reject);
    sent.on('response', (response) => {
      const isStream = response.headers['content-type'] === 'text/event-stream';
      let text = '';
      const end = (): void => {
        const [, problem] = /^event: failed\ndata: .*"status":(\d+)/m.exec(text) ?? [];
        resolve({ status: Number(problem ?? response.statusCode), text });
      };
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
        if (isStream && /event: (attention|end)/.test(text)) response.destroy();
      });
      if (isStream && method === 'GET') setTimeout(() => response.destroy(), 20);
      response.on('close', end).on('error', end);
    });
    sent.end(sending);
  });
}

type Followed = { text(): string; isOver(): boolean; leave(): void };

/** Reads a stream as it comes. */
async function follow(
  path: string,
  headers = { authorization: `Bearer ${OPERATOR_TOKEN}` } as Record<string, string>,
): Promise<Followed> {
  const leaving = new AbortController();
  const { body } = await fetch(url + API_PATH + path, { headers, signal: leaving.signal });
  let [text, over] = ['', false];
  const reading = async (): Promise<void> => {
    for await (const chunk of body ?? []) text += Buffer.from(chunk).toString();
  };
  void reading()
    .catch(() => {})
    .finally(() => (over = true));
  return { text: () => text, isOver: () => over, leave: () => leaving.abort() };
}

/**
 * The rule, in other words than those of the guard.
 * @param at a location, null for none, or `anywhere` or `everywhere`
 */
function may({ rights }: Actor, role: NeededRole, at: string | null, during: Span = [0, Infinity]): boolean {
  const groups = at === SWAP ? [...OF_SWAP, ...handsDuring(during)] : GROUPS[at ?? ''];
  return rights.some(({ roles, locations, locationGroups }) => {
    if (role === 'viewer' && roles.every((each) => ['integrator', 'metrics'].includes(each))) return false;
    if (role === 'any' && roles.join() === 'metrics') return false;
    if (role === 'metrics' && roles.join() === 'integrator') return false;
    if (!['viewer', 'any', 'metrics'].includes(role) && !roles.some((each) => role.split(' or ').includes(each)))
      return false;
    if (locations === null || at === 'anywhere') return true;
    if (at === null || at === 'everywhere') return false;
    return locations.includes(at) || locationGroups.some((group) => groups?.includes(group));
  });
}

type Span = readonly [began: number, ended: number];
function handsDuring([began, ended]: Span): string[] {
  return held.filter(({ from, until }) => from <= ended && until >= began).map(({ hand }) => hand);
}

/** @returns the status, or `let in` for any that is none of a refusal */
function expectedOf(actor: Actor, { asked: { route }, at, roles }: Sample): number | 'let in' {
  if (actor.rights.length === 0) return 401;
  if (actor.prefix !== API_PATH && route in FOR_PROGRAMS) return 404;
  const { of } = accessOf(route);
  if (['order', 'webhook'].includes(of) && !may(actor, 'viewer', at)) return 404;
  if (of === 'location' && !may(actor, 'any', at)) return 404;
  return roles.every((role) => may(actor, role, at)) ? 'let in' : 403;
}

function accessOf(route: string): Access {
  const access = ACCESS[route];
  if (access === undefined) throw new Error(`no such route: ${route}`);
  return access;
}

function methodOf(route: string): string {
  return route.split(' ')[0] ?? '';
}

function pathOf(route: string, params: Record<string, string>): string {
  return (route.split(' ')[1] ?? '').replaceAll(/:(\w+)/g, (_, name: string) => {
    if (params[name] === undefined) throw new Error(`nothing says which ${name} ${route} is asked about: add it here`);
    return encodeURIComponent(params[name]);
  });
}

type Sample = { asked: Asked; at: string | null; roles: NeededRole[] };

/** Every route as it is asked at `west`, with what is member data and without, and about an order that has no location. */
function samplesOf(route: string): Sample[] {
  const { role, of, reveals } = accessOf(route);
  const method = methodOf(route);
  if (method !== 'GET' && !(route in BODIES)) throw new Error(`nothing says what ${route} is sent: add it to BODIES`);
  const [webhookId = '', tokenId = ''] = [ids.west.webhooks[0], ids.west.tokens[0]];
  const params = {
    serviceOrderId: 'west-1',
    webhookId,
    locationId: 'west',
    tokenId,
    sessionId: SESSION,
    grantId: randomUUID(),
    integration: 'standard',
    name: isOfNone(route) ? 'none' : 'toast-us',
  };
  const needed = route === 'GET /search' ? '?q=west' : '';
  const asked = { route, method, path: pathOf(route, params) + needed, body: BODIES[route] };
  const withQuery = (query: string): Asked => ({ ...asked, path: `${asked.path}?${query}` });
  const roles: NeededRole[] = reveals?.when({}) === true && of === 'all' ? [role, 'member-data'] : [role];
  if (of === 'all') return [{ asked, at: 'everywhere', roles }];
  if (of === 'none') return [{ asked, at: 'anywhere', roles }];
  if (of === 'given') {
    const body = { ...BODIES[route], locations: undefined };
    return [
      { asked, at: 'west', roles },
      { asked: { ...asked, body }, at: 'everywhere', roles },
      { asked: { ...asked, body: { ...body, locationGroups: ['g-west'] } }, at: 'g-west:fresh', roles },
    ];
  }
  if (of === 'new') {
    const path = `${pathOf(route, { locationId: 'g-west:fresh' })}?dryRun=true`;
    return [
      { asked, at: 'west', roles },
      { asked: { ...asked, path, body: { ...BODIES[route], groups: ['g-west'] } }, at: 'g-west:fresh', roles },
    ];
  }
  if (of === 'list') {
    const takesIt = method !== 'GET' || QUERIES[route]?.includes('location') === true;
    const there =
      method === 'GET' ? withQuery('location=west') : { ...asked, body: { ...BODIES[route], location: 'west' } };
    return [{ asked, at: 'anywhere', roles }, ...(takesIt ? [{ asked: there, at: 'west', roles }] : [])];
  }
  const samples: Sample[] = [{ asked: reveals === undefined ? asked : withQuery('contents=false'), at: 'west', roles }];
  if (reveals !== undefined)
    samples.push({ asked: withQuery('contents=true'), at: 'west', roles: [role, 'member-data'] });
  // A cancel or a change is answered of what was read, which this one never was.
  if (of !== 'order' || /\/(?:conclude|answer)$/.test(route)) return samples;
  return [...samples, { asked: { ...asked, path: pathOf(route, { serviceOrderId: 'nowhere-1' }) }, at: null, roles }];
}

/** Does some at a time. */
async function eachOf<Item>(items: readonly Item[], work: (item: Item, nth: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let nth = next++; nth < items.length; nth = next++) await work(items[nth] as Item, nth);
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

/** Everything that an act could have changed, of one place or of all. */
async function stateOf(place: Place | null): Promise<unknown> {
  const ofOrders = ['orders', 'placements', 'webhooks', 'cancellations', 'provider_orders'];
  const state: Record<string, unknown> = {};
  for (const table of [...ofOrders, 'webhook_tokens', 'locations']) {
    state[table] = await stage.query(
      `SELECT md5(string_agg(kept::text, ',' ORDER BY kept::text)), count(*) FROM ${table} t, LATERAL (SELECT to_jsonb(t) - 'last_used_at' AS kept) AS k
       WHERE $1::text IS NULL OR location_id = $1`,
      [place],
    );
  }
  state['operator_sessions'] = await stage.query('SELECT count(*) FROM operator_sessions');
  for (const table of ['operator_grants', 'operator_tokens']) {
    state[table] = await stage.query(
      `SELECT to_jsonb(t) - 'last_used_at' AS kept FROM ${table} t
       WHERE $1::text IS NULL OR locations IS NULL OR $1 = ANY (locations) OR location_groups && $2 ORDER BY 1`,
      [place, ['both', 'g-east', 'g-none']],
    );
  }
  return state;
}

class Tally extends Map<string, number> {
  add(actor: Actor, action: string): void {
    const key = `${actor.name}: ${action}`;
    this.set(key, (this.get(key) ?? 0) + 1);
  }
  sorted(): [string, number][] {
    return [...this].toSorted(([a], [b]) => (a < b ? -1 : 1));
  }
}

/** Those of a replay of many, each of which is an act as well. */
function replayedOf(action: string | undefined, text: string): { locationId: string }[] {
  return action === 'replay many' ? ((JSON.parse(text) as { replayed?: { locationId: string }[] }).replayed ?? []) : [];
}

/** The location in a path, or that of the order or webhook in it. */
function placesIn({ route, path }: Asked): string[] {
  const id = decodeURIComponent(/^\/(?:orders|webhooks|locations)\/([^/?]+)/.exec(path)?.[1] ?? '');
  if (route.includes(':locationId')) return [id];
  return ([...PLACES, SWAP] as const).filter(
    (place) => id.startsWith(`${place}-`) || webhooksBefore.get(place)?.has(id.toLowerCase()) === true,
  );
}

/** Where an act or a look must be in the audit: at its own location, at those of what was found, and where a right applies. */
function concernedBy(asked: Asked, text: string): string[] {
  const { of } = accessOf(asked.route);
  if (asked.route === 'POST /search/member')
    return [
      ...new Set((JSON.parse(text) as { orders: { locationId: string }[] }).orders.map((each) => each.locationId)),
    ];
  if (!/^POST .operators.(tokens|grants)/.test(asked.route))
    return of === 'list' || of === 'all' ? [] : placesIn(asked);
  const { locations, locationGroups } = JSON.parse(text) as Right;
  return ['west', SWAP].filter((place) => locations?.includes(place) || locationGroups.includes('pair'));
}

const TYPED = /"providerOrderId":"(?:east-pos-1|west-pos-0)"/g;
const MEMBER = 'member-of-all';
const webhooksBefore = new Map<Place, Set<string>>();
/** Lets the same member have an order at each place. */
async function plantMember(): Promise<void> {
  await stage.query(
    `UPDATE order_contents SET contents = jsonb_set(contents, '{member,id}', to_jsonb($1::text)) WHERE service_order_id LIKE '%-0'`,
    [MEMBER],
  );
  for (const place of [...PLACES, SWAP] as const) webhooksBefore.set(place, new Set(await webhooksOf(place)));
}

/** Moves `swap` from one hand to the other. */
async function swapHands(): Promise<void> {
  const hand = HANDS[held.length % 2] ?? '';
  const last = held.at(-1);
  held.push({ hand, from: performance.now(), until: Infinity });
  const asked = { route: 'PATCH', method: 'PATCH', path: `/locations/${SWAP}`, body: { groups: [...OF_SWAP, hand] } };
  const by = {
    name: 'OPERATOR_TOKEN',
    rights: [],
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
    prefix: API_PATH,
  };
  expect(await ask(by, asked)).toMatchObject({ status: 200 });
  if (last !== undefined) last.until = performance.now();
}

/** What is in the audit behind `from`, by actor. An act at several locations has a row at each. */
async function auditedSince(from: string, outcomes: string[], more = ''): Promise<[string, number][]> {
  const rows = await stage.query(
    `SELECT actor_name || ': ' || action ${more} AS action, count(DISTINCT (request_id, webhook_id))::int AS times
     FROM audit JOIN audit_outcomes o USING (audit_id)
     WHERE audit_id > $1::bigint AND o.outcome = ANY ($2) AND action <> 'sign in' ${more === '' ? '' : 'AND location_id IS NOT NULL'} GROUP BY 1`,
    [from, outcomes],
  );
  return rows
    .map((row): [string, number] => [String(row['action']), Number(row['times'])])
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
}

async function lastAudited(): Promise<string> {
  const [row] = await stage.query('SELECT coalesce(max(audit_id), 0)::text AS id FROM audit');
  return String(row?.['id']);
}

it('every route accepts exactly the operators with its role at the location, at the API and the console', async () => {
  const all = Object.keys(ACCESS).flatMap((route) =>
    samplesOf(route).flatMap((sample) =>
      [...nobody, ...actors].map((actor) => ({ actor, asked: sample.asked, expected: expectedOf(actor, sample) })),
    ),
  );
  const wrong: unknown[] = [];
  const run = (some: typeof all, tally: (actor: Actor, asked: Asked, answered: Answered) => void): Promise<void> =>
    eachOf(some, async ({ actor, asked, expected }) => {
      const answered = await ask(actor, asked);
      const { status } = answered;
      tally(actor, asked, answered);
      const isLetIn = ![401, 403, 500, 503].includes(status) && (status === 404) === isOfNone(asked.route);
      const isRight = expected === 'let in' ? isLetIn : status === expected;
      if (!isRight)
        wrong.push([actor.name, actor.prefix, asked.method, asked.path, 'answered', status, 'not', expected]);
    });

  const from = await lastAudited();
  const before = await stateOf(null);
  const refused = new Tally();
  await run(
    all.filter(({ expected }) => expected !== 'let in'),
    (actor, _asked, { status }) => {
      if (status === 403) refused.add(actor, 'be refused');
    },
  );
  expect(wrong).toEqual([]);
  expect(await stateOf(null)).toEqual(before);
  expect(await auditedSince(from, ['refused'])).toEqual(refused.sorted());
  expect(await auditedSince(from, ['done', 'failed'])).toEqual([]);

  const done = new Tally();
  await run(
    all.filter(({ expected }) => expected === 'let in'),
    (actor, { route, path }, { status, text }) => {
      const { does, reveals } = accessOf(route);
      const action = does ?? (path.endsWith('contents=true') ? reveals?.action : undefined);
      if (action !== undefined && status < 300 && !path.endsWith('dryRun=true')) done.add(actor, action);
      for (const _each of replayedOf(action, text)) done.add(actor, 'replay');
    },
  );
  expect(wrong).toEqual([]);
  expect(await auditedSince(from, ['done'])).toEqual(done.sorted());
  expect(done.size).toBeGreaterThan(20);
});

type Chance = { random(): number; oneOf<Item>(items: readonly Item[]): Item; often(share: number): boolean };

function chanceFrom(seed: number): Chance {
  const random = repeatably(seed);
  return {
    random,
    oneOf: (items) => items[Math.floor(random() * items.length)] as (typeof items)[number],
    often: (share) => random() < share,
  };
}

/** Admits those who call at random, and plants what they call about. */
async function admitCallers(): Promise<Actor[]> {
  // Who may act at `east` is not among them, so that nothing has to happen there.
  const callers = actors.filter(({ name }) => !/^(operator|integrator|admin|all roles) at (all|east)$/.test(name));
  for (const [name, rights] of Object.entries(MIXED)) callers.push(await admitPerson(name, rights));
  const admitted = actors.length;
  for (const role of ROLES) await admit(`${role} at the other hand`, right([role], [], ['g-other']));
  callers.push(...actors.splice(admitted));
  await plant(SWAP);
  await plantMember();
  // Hardly anybody else changes locations.
  callers.push(
    ...Array.from({ length: 2 }, () => callers.filter(({ name }) => /integrator|west and swap/.test(name))).flat(),
  );
  return callers;
}

const WHERE = [['west'], ['east'], ['west', 'east'], [SWAP], null];
const GROUP_LISTS = [
  ['g-west'],
  ['g-west'],
  ['g-west'],
  ['g-east'],
  ['both'],
  ['g-none'],
  ['g-west', 'g-east'],
  ['pair'],
  ['pair'],
  ['pair'],
  ['pair'],
  [],
  [...OF_SWAP, 'g-west'],
];

type Things = Readonly<Record<string, string[]>>;

/** What paths can name. Plants tokens and grants of all scopes. */
async function plantThings(): Promise<Things> {
  const webhooks = await Promise.all(([...PLACES, SWAP, SWAP] as const).map(webhooksOf));
  const things: Record<string, string[]> = {
    name: ['toast-us'],
    serviceOrderId: [
      ...ids.west.orders,
      ...ids.east.orders,
      ...ids.swap.orders,
      ...ids.swap.orders,
      'nowhere-1',
      'none',
      'west',
      'west-1/live',
      'west-1?',
      '%00',
      '\0',
    ],
    webhookId: [...webhooks.flat(), ...webhooks.flat().map((id) => id.toUpperCase()), uuidV7(), randomUUID(), 'none'],
    locationId: [
      ...PLACES,
      ...PLACES,
      SWAP,
      SWAP,
      SWAP,
      'g-west:fresh-1',
      'g-west:fresh-2',
      'g-west:fresh-2',
      'west,east',
      'WEST',
      'west/',
      '*',
      'none',
    ],
    tokenId: [...ids.west.tokens, ...ids.east.tokens, ...ids.swap.tokens, randomUUID()],
    sessionId: [SESSION, randomUUID()],
    grantId: [randomUUID()],
    integration: ['standard', 'none'],
  };
  for (const [nth, [locations, groups]] of [
    ...WHERE.map((each) => [each, []] as const),
    ...GROUP_LISTS.filter((each) => each.length > 0).map((each) => [[], each] as const),
  ].entries()) {
    const [tokenId, grantId] = [randomUUID(), randomUUID()];
    things['tokenId']?.push(tokenId);
    things['grantId']?.push(grantId);
    await stage.query(
      `WITH t AS (INSERT INTO operator_tokens (token_id, sha256, name, roles, locations, location_groups)
                  VALUES ($1, $2, $3, '{admin}', $5, $6))
       INSERT INTO operator_grants (grant_id, group_name, roles, locations, location_groups)
       VALUES ($4, $3, '{admin}', $5, $6)`,
      [tokenId, digest(tokenId), `planted ${nth}`, grantId, locations, groups],
    );
  }
  return things;
}

/** The values of each parameter of a query. */
function queriesOf(things: Things): Record<string, readonly string[]> {
  return {
    location: [...PLACES, ...PLACES, SWAP, SWAP, 'none', '', 'west,east', '%', '{west,east}'],
    group: ['g-west', 'g-east', 'both', 'pair', 'g-none', '\0', '{g-west,g-east}'],
    dryRun: ['true', 'true', 'false', '1'],
    unpaused: ['true', 'false'],
    contents: ['true', 'true', 'true', 'true', 'false', 'TRUE', '1', ''],
    ordered: ['true', 'false'],
    order: things['serviceOrderId'] ?? [],
    cursor: [...(things['serviceOrderId'] ?? []), ...(things['webhookId'] ?? [])],
    integration: ['standard', 'none'],
    outcome: ['applied', 'dropped', 'unmatched', 'stale'],
    state: ['sent', 'in_doubt', 'held'],
    limit: ['1', '2', '200'],
    hours: ['1', '24'],
    q: ['K472', 'West', 'east-pos-1', ...(things['serviceOrderId'] ?? []), ...(things['webhookId'] ?? [])],
    open: ['true', 'false'],
  };
}

function bodyAtRandom(
  { random, oneOf, often }: Chance,
  { things, queries }: { things: Things; queries: Record<string, readonly string[]> },
  route: string,
): unknown {
  if (often(0.05)) return oneOf(['{', '[]', '""', 'null']);
  if (often(0.1)) return { dryRun: true };
  if (route === 'POST /webhooks/replay') {
    return {
      ...(often(0.9) && { outcome: oneOf(queries['outcome'] ?? []) }),
      ...(often(0.5) && { location: oneOf(things['locationId'] ?? []) }),
      ...(often(0.2) && { cursor: oneOf(things['webhookId'] ?? []) }),
      ...(often(0.3) && { dryRun: true }),
      limit: 1,
    };
  }
  if (accessOf(route).of === 'given') {
    return {
      ...(route.endsWith('tokens') ? { name: `random ${random()}` } : { group: `random ${random()}` }),
      roles: [oneOf(ROLES), oneOf(ROLES)],
      ...(often(0.8) && { locations: oneOf([...WHERE, ['west', 'west'], ['west', 'none'], []]) }),
      ...(often(0.4) && { locationGroups: oneOf(GROUP_LISTS) }),
    };
  }
  if (route === 'PUT /locations/:locationId' || route === 'PATCH /locations/:locationId') {
    return {
      ...(often(route.startsWith('PUT') ? 0.95 : 0.3) && { integration: 'standard', settings: SETTINGS }),
      ...(often(route.startsWith('PUT') ? 0.8 : 0.4) && { groups: oneOf(GROUP_LISTS) }),
      ...(often(0.5) && { name: `A name ${random()}` }),
      ...(often(0.25) && { contacts: [{ phone: '+4930123456', via: 'webhook', name: `${random()}` }] }),
    };
  }
  if (route === 'POST /search/member') return { text: oneOf([MEMBER, 'nobody']) };
  if (route === 'POST /locations/:locationId/tokens') return { label: oneOf(['one', 'another']) };
  if (route.endsWith('/resolve') && often(0.7))
    return { there: true, providerOrderId: oneOf(['east-pos-1', 'west-pos-0', 'new']) };
  return BODIES[route];
}

/** Makes the function that draws a request of a caller. */
function askerAtRandom(chance: Chance, things: Things): (caller: Actor) => Asked {
  const { oneOf, often } = chance;
  const queries = queriesOf(things);
  // The others are large, and say the same to everybody.
  const routes = Object.keys(ACCESS).filter((route) => !['all', 'none'].includes(accessOf(route).of));
  const ofIntegrators = routes.filter((route) => accessOf(route).role === 'integrator');
  /** Hardly anybody else gets further with these. */
  const favourites = [
    [/integrator/, ofIntegrators],
    [/member-data|reader/, routes.filter((route) => accessOf(route).reveals || route === 'POST /search/member')],
    [/admin/, routes.filter((route) => / .operators.(tokens|grants)/.test(route))],
  ] as const;
  return ({ name: caller }) => {
    const theirs = favourites.find(([name]) => name.test(caller))?.[1] ?? routes;
    const isTheirs = theirs !== routes && often(0.6);
    const route = oneOf(often(0.02) ? Object.keys(ACCESS) : isTheirs ? theirs : routes);
    const params = Object.fromEntries(Object.entries(things).map(([name, values]) => [name, oneOf(values)]));
    if (isTheirs && often(0.6)) params['locationId'] = oneOf(['west', SWAP, SWAP, 'g-west:fresh-1', 'g-west:fresh-2']);
    // It leaves an order. Who then creates the location again is refused in another way.
    if (route.endsWith('/test-order')) params['locationId'] = oneOf(['west', 'east', 'none']);
    const names = (QUERIES[route] ?? []).filter(() => often(0.4));
    if (often(0.03)) names.push(oneOf(Object.keys(queries)));
    // What comes twice is not to be read in two ways.
    if (often(0.05) && names[0] !== undefined) names.push(names[0]);
    const query = names.map((name) => `${name}=${encodeURIComponent(oneOf(queries[name] ?? []))}`).join('&');
    const path = pathOf(route, params) + (often(0.02) ? '/' : '') + (query === '' ? '' : `?${query}`);
    const method = methodOf(route) === 'GET' && often(0.05) ? 'HEAD' : methodOf(route);
    const headers = {
      ...(often(0.1) && { 'if-match': oneOf(['"none"', '*', 'none']) }),
      ...(often(0.3) && { 'if-none-match': '*' }),
      ...(often(0.6) && { 'idempotency-key': oneOf(['key-of-one', 'key-of-another']) }),
    };
    return {
      route,
      method,
      path,
      headers,
      ...(!['GET', 'HEAD'].includes(method) && { body: bodyAtRandom(chance, { things, queries }, route) }),
    };
  };
}

type Call = { actor: Actor; asked: Asked };
type Answer = Call & { text: string; during: Span };

/** Asks everything, while `swap` changes hands. Counts what was answered. */
async function askAll(calls: readonly Call[]) {
  const [refused, done, there] = [new Tally(), new Tally(), new Tally()];
  const crossings: unknown[] = [];
  const answers: Answer[] = [];
  const statuses = new Map<number, number>();
  let swapping = swapHands();
  await eachOf(calls, async ({ actor, asked }, nth) => {
    if (nth % 150 === 75) swapping = swapping.then(swapHands);
    const began = performance.now();
    const { status, text } = await ask(actor, asked);
    const during: Span = [began, performance.now()];
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    answers.push({ actor, asked, text, during });
    if (status >= 500) crossings.push([actor.name, asked, status]);
    const { does, reveals } = accessOf(asked.route);
    const query = Object.fromEntries(new URL(asked.path, url).searchParams);
    const isShown = reveals?.when(query) === true;
    const isDry =
      (BODIES[asked.route] !== undefined && (asked.body as { dryRun?: boolean } | undefined)?.dryRun === true) ||
      (QUERIES[asked.route]?.includes('dryRun') === true && query['dryRun'] === 'true');
    const action = does ?? (isShown ? reveals?.action : undefined);
    // It is known only when the location is locked.
    const isOfGroups = /change only groups|or change a contact with/.test(text);
    if (status === 403 && !isOfGroups) refused.add(actor, 'be refused');
    if (status < 300 && action !== undefined && !isDry) {
      done.add(actor, action);
      for (const place of concernedBy(asked, text)) there.add(actor, `${action} at ${place}`);
    }
    for (const { locationId } of isDry ? [] : replayedOf(action, text)) {
      done.add(actor, 'replay');
      there.add(actor, `replay at ${locationId}`);
    }
    const [place = ''] = placesIn(asked);
    const entersContact = status < 300 && JSON.stringify(asked.body ?? '').includes('"via"');
    if (entersContact && !may(actor, 'operator', place.replace(/-.*/, ''), during))
      crossings.push([actor.name, asked, text]);
  });
  await swapping;
  return { answers, statuses, refused, done, there, crossings };
}

/** The answers that say what their caller may not know. */
async function crossingsIn(answers: readonly Answer[]): Promise<unknown[]> {
  const crossings: unknown[] = [];
  // Those that were made meanwhile, too.
  const webhooksAt = new Map<Place, Set<string>>();
  for (const place of [...PLACES, SWAP] as const) webhooksAt.set(place, new Set(await webhooksOf(place)));
  for (const { actor, asked, text: answer, during } of answers) {
    // Somebody typed these when they resolved an order.
    const text = answer.replaceAll(TYPED, '');
    for (const place of [...PLACES, SWAP] as const) {
      const isOfOrder = new RegExp(`\\b(${place}-\\w|${COUNTED[place]}\\b)`).test(text) && !isListOfLocations(asked);
      const isOf = (ids: Set<string> = new Set()): boolean => text.match(UUID)?.some((id) => ids.has(id)) === true;
      if ((isOfOrder || isOf(webhooksAt.get(place))) && !may(actor, 'viewer', place, during))
        crossings.push([actor.name, asked, place, text]);
      if ((text.includes(`"${place}"`) || isOf(new Set(ids[place].tokens))) && !may(actor, 'any', place, during))
        crossings.push([actor.name, asked, place, text]);
      if (text.includes(secretOf(place)) && !may(actor, 'member-data', place, during))
        crossings.push([actor.name, asked, text]);
    }
    if (text.includes('fresh-') && !may(actor, 'any', 'g-west:fresh')) crossings.push([actor.name, asked, text]);
    const isOfAll = new RegExp(`nowhere-1|\\b${COUNTED.all}\\b`).test(text);
    if (isOfAll && !may(actor, 'viewer', null)) crossings.push([actor.name, asked, text]);
  }
  return crossings;
}

it(`none of ${CALLS} random calls exceeds its caller's rights (SEED=${SEED})`, async () => {
  const chance = chanceFrom(SEED);
  const { oneOf } = chance;
  const callers = await admitCallers();
  const askAtRandom = askerAtRandom(chance, await plantThings());

  // A few callers at a time, so that their permissions are in the cache while `swap` changes hands.
  let few: Actor[] = [];
  const calls = Array.from({ length: CALLS }, (_, nth) => {
    if (nth % 100 === 0) few = Array.from({ length: 6 }, () => oneOf(callers));
    const actor = oneOf(few);
    return { actor, asked: askAtRandom(actor) };
  });
  const from = await lastAudited();
  const before = await stateOf('east');
  const { answers, statuses, refused, done, there, crossings } = await askAll(calls);
  crossings.push(...(await crossingsIn(answers)));
  expect(crossings.slice(0, 3)).toEqual([]);
  expect(await stateOf('east')).toEqual(before);
  // Only the integrators of this group could create locations, and change the groups of others.
  const groups = await stage.query(`SELECT location_id AS id, array_remove(groups, 'g-west') AS others FROM locations`);
  for (const { id, others } of groups.filter(({ id }) => id !== SWAP)) {
    expect(others, String(id)).toEqual(GROUPS[String(id)]?.filter((each) => each !== 'g-west') ?? []);
  }
  expect(held.length).toBeGreaterThan(CALLS / 200);
  // While one hand alone had it, a call of the other would have been a crossing.
  const sharp = answers.filter(({ during }) => handsDuring(during).length === 1);
  expect(sharp.length).toBeGreaterThan(CALLS / 20);
  done.set('OPERATOR_TOKEN: change', held.length);
  expect(await auditedSince(from, ['done'])).toEqual(done.sorted());
  const written = new Map(await auditedSince(from, ['done'], `|| ' at ' || location_id`));
  expect(there.sorted().filter(([what, times]) => (written.get(what) ?? 0) < times)).toEqual([]);
  const kinds = new Set([...there.keys()].map((what) => what.replace(/^.*: /, '')));
  const many = ['read contents', 'read webhook', 'search member', 'give roles', 'issue token', 'change', 'replay'];
  for (const each of CALLS < 10_000 ? ['read webhook', 'search member', 'issue token'] : many) {
    expect([...kinds]).toEqual(expect.arrayContaining([`${each} at west`, `${each} at ${SWAP}`]));
  }
  expect((await auditedSince(from, ['refused'])).filter(([action]) => action.endsWith(': be refused'))).toEqual(
    refused.sorted(),
  );
  // Each of them came about.
  process.stdout.write(`${CALLS} calls: ${JSON.stringify(Object.fromEntries(statuses))}\n`);
  for (const status of [200, 400, 403, 404, 409, ...(CALLS < 10_000 ? [] : [201, 412, 422])])
    expect(statuses.get(status), String(status)).toBeGreaterThan(0);
});

it('a resource of another location is answered exactly like a missing resource if the caller has no rights there', async () => {
  const [webhook = '', noWebhook] = [ids.east.webhooks[0], uuidV7()];
  const pairs = [
    ['/orders/ID', 'east-1', 'missing', '%00'],
    ['/orders/ID/live', 'east-1', 'missing'],
    ['/orders/ID?contents=true', 'east-1', 'missing'],
    ['/webhooks/ID', webhook, noWebhook],
    ['/locations/ID', 'east', 'missing'],
    ['/orders?cursor=ID', 'east-1', 'missing'],
    ['/orders?location=west&cursor=ID', 'east-1', 'missing'],
    ['/webhooks?cursor=ID', webhook, noWebhook],
    ['/webhooks?order=ID', 'east-0', 'missing'],
    ...['orders', 'live', 'traffic', 'tokens'].map((list) => [`/${list}?location=ID`, 'east', 'missing']),
    ...['orders', 'locations', 'tokens', 'audit', 'webhooks'].map((list) => [`/${list}?group=ID`, 'g-east', 'g-none']),
    ...['', '?dryRun=true'].map((query) => [`DELETE /locations/ID${query}`, 'east', 'missing']),
    ['PATCH /locations/ID', 'east', 'missing'],
    ...['check', 'connect', 'tokens'].map((what) => [`POST /locations/ID/${what}`, 'east', 'missing']),
    [`DELETE /locations/ID/tokens/${ids.east.tokens[0]}`, 'east', 'missing'],
    ...['', '?dryRun=true'].map((query) => [`PUT /locations/ID${query}`, 'east', 'missing']),
  ];
  const [inTheirs] = await stage.query(`SELECT count(*)::int FROM status_events WHERE service_order_id = 'east-0'`);
  expect(inTheirs?.['count']).toBeGreaterThan(0);
  // Neither these groups nor none are those of anybody at `west`.
  const bodies = [{ groups: ['both'] }, { groups: ['g-west', 'g-east'] }, {}, { settings: 'wrong' }];
  for (const actor of actors.filter(({ name }) => name.endsWith('west'))) {
    for (const [what = '', ...each] of pairs) {
      const [path = '', method = 'GET'] = what.split(' ').toReversed();
      const sent =
        method === 'PUT' ? bodies.map((more) => ({ integration: 'standard', settings: SETTINGS, ...more })) : [{}];
      for (const body of sent) {
        const answered = await Promise.all(
          each.map((id) =>
            ask(actor, { route: what, method, path: path.replace('ID', id), ...(method !== 'GET' && { body }) }),
          ),
        );
        expect(new Set(answered.map((answer) => JSON.stringify(answer))).size, `${actor.name}: ${what}`).toBe(1);
        expect(method === 'GET' || (answered[0]?.status ?? 0) >= 400, `${actor.name}: ${what}`).toBe(true);
      }
    }
  }
});

it('an order that moves to another location disappears from streams of operators without rights there', async () => {
  await stage.seedOrder({ serviceOrderId: 'moving-1', locationId: 'west' });
  const actor = actors.find(({ name }) => name === 'viewer at west');
  const [board, order] = await Promise.all(
    ['/live', '/orders/moving-1/live'].map((path) => follow(path, actor?.headers)),
  );
  await until(() => board?.text().includes('moving-1'));
  await stage.query(`WITH o AS (UPDATE orders SET location_id = 'east' WHERE service_order_id = 'moving-1')
    UPDATE placements SET location_id = 'east' WHERE service_order_id = 'moving-1'`);
  await stage.query(`INSERT INTO outbox (service_order_id, sequence, rank) VALUES ('moving-1', 3, 20)`);
  const last = (): string => board?.text().split('event: reset')[2] ?? '';
  await until(() => last().includes('event: complete'));
  await until(() => order?.isOver());
  expect(last()).not.toContain('moving-1');
  // A holder of a case may have the word in the name.
  expect(`${board?.text()}${order?.text()}`).not.toContain('"east"');
  board?.leave();
});

const right = (roles: Right['roles'], locations: Right['locations'], locationGroups: string[] = []): Right => ({
  roles,
  locations,
  locationGroups,
});
/** Who has one role here and another there. */
const MIXED: Readonly<Record<string, readonly Right[]>> = {
  'a manager of west who reads east': [right(['operator', 'member-data'], ['west']), right(['viewer'], ['east'])],
  'an admin of west who reads all': [right(['admin'], ['west']), right(['viewer'], null)],
  'an operator of west who reads what members of east wrote': [
    right(['operator'], ['west', 'north']),
    right(['member-data'], ['east']),
  ],
  'an integrator of a group who reads another': [
    right(['integrator'], [], ['g-west']),
    right(['viewer', 'member-data'], ['east'], ['g-none']),
  ],
  'an admin of both groups of west': [right(['admin'], ['west'], ['g-west'])],
  'an admin of west and swap': [right(['admin'], [], ['pair'])],
  'a reader of both hands': [right(['member-data', 'operator'], [], ['g-west', 'g-other'])],
};

/** What routes may be asked with. */
const QUERIES: Record<string, string[]> = {
  'GET /search': ['q'],
  'GET /orders': ['location', 'group', 'integration', 'state', 'open', 'limit', 'cursor'],
  'GET /orders/:serviceOrderId': ['contents', 'ordered'],
  'GET /live': ['location', 'integration'],
  'GET /webhooks': ['location', 'group', 'integration', 'outcome', 'order', 'limit', 'cursor'],
  'GET /webhooks/:webhookId': ['contents'],
  'GET /traffic': ['location', 'group', 'integration', 'hours'],
  'GET /scorecards': ['location', 'group', 'integration'],
  'GET /audit': ['location', 'group', 'order', 'limit', 'cursor'],
  'GET /locations': ['group'],
  'GET /tokens': ['location', 'group'],
  'PUT /locations/:locationId': ['dryRun'],
  'PATCH /locations/:locationId': ['dryRun'],
  'DELETE /locations/:locationId': ['dryRun', 'unpaused'],
};

const UUID = /[0-9a-f]{8}-[0-9a-f-]{27}/g;
/** A location counts its webhooks, so that its integrator sees whether they arrive. */
const isListOfLocations = ({ path }: Asked): boolean => /^\/locations\b[^/]*\/?[^/]*$/.test(path);
