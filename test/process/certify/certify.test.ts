import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordPoll } from '../../../src/core/polling/status-poller.ts';
import type { StatusEvent } from '../../../src/core/domain/order.ts';
import type { Provider } from '../../../src/core/domain/provider.ts';
import { parseAllowedHosts } from '../../../src/core/egress/allowed-hosts.ts';
import { locationDeps } from '../../../src/core/locations/location-deps.ts';
import { parseSettingsKeys } from '../../../src/core/locations/settings-key.ts';
import { ANSWER_LIMITS } from '../../../src/http/webhook-routes.ts';
import { certify, type Certification } from '../../../src/diagnostics/certify.ts';
import type { Check } from '../../../src/diagnostics/check.ts';
import {
  sampleContents,
  statusesOf,
  type CertifyDeps,
  type CertifyOptions,
} from '../../../src/diagnostics/test-run.ts';
import { registry as ownProviders } from '../../../src/providers/index.ts';
import { standard } from '../../../src/providers/standard/index.ts';
import { allowedHosts } from '../../../world/network/allowed-loopback.ts';
import { sendJson } from '../../../world/network/serve-http.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';
import { startSystem, type System } from '../../../world/system/start-system.ts';
import { until } from '../../../world/processes/until.ts';
import { ANSWER_MS, BROKEN, SECOND_URL } from './broken-bridges.ts';
import { startBridge, type Bridge, type Habits } from './start-bridge.ts';

const LIMITS = { answerMs: ANSWER_MS, statusMs: 10_000, graceMs: 4_000 };

/** What a POS says that is asked what became of an order. */
const ANSWERS: Record<string, readonly StatusEvent[] | undefined> = Object.fromEntries([
  ...(['completed', 'ready', 'cancelled'] as const).map((status) => [
    status,
    [{ status, serviceOrderId: 'any', nativeStatus: status }],
  ]),
  ['nobody', undefined],
]);
/** What a POS might be like otherwise: one that cannot be sent an order twice, or can be asked what became of it. */
const OTHERS: Provider[] = [
  { ...standard, integration: 'forgetful', deduplicates: false, findOrder: async () => undefined },
  { ...standard, integration: 'mute', deduplicates: false },
  ...Object.entries(ANSWERS).map(([name, says]) => ({
    ...standard,
    integration: `asked-${name}`,
    readStatus: async () => says,
  })),
].map((provider) => provider as unknown as Provider);

let system: System;
let deps: CertifyDeps;

beforeAll(async () => {
  // certify has a webhook answered 500 by keeping it waiting for longer than an answer may take.
  system = await startSystem({ providers: OTHERS, limits: ANSWER_LIMITS, jobs: 'all' });
  const pool = new pg.Pool({ connectionString: system.env['DATABASE_URL'], max: 20 });
  const registry = new Map([...ownProviders, ...OTHERS.map((provider) => [provider.integration, provider] as const)]);
  const rules = {
    registry,
    keys: parseSettingsKeys(system.env['SETTINGS_KEY'] ?? ''),
    publicUrl: system.urls[0] ?? '',
  };
  deps = { ...(await locationDeps(pool, rules, allowedHosts)), keys: rules.keys, publicUrl: rules.publicUrl };
  await system.addLocation(SECOND_URL.locationId, { ordersUrl: 'http://127.0.0.1:9/' });
  SECOND_URL.url = await system.webhookUrl(SECOND_URL.locationId);
});
afterAll(() => Promise.all([system?.stop(), deps?.pool.end()]));

const optionsOf = (locationId: string, type: 'pickup' | 'delivery' = 'pickup'): CertifyOptions => ({
  locationId,
  contents: sampleContents(type),
  statuses: statusesOf(type),
  repeats: true,
  limits: LIMITS,
  signal: new AbortController().signal,
});

/** The person at the till does what certify asks for. */
async function certifyBridge(
  locationId: string,
  habits: Habits,
  about: Partial<CertifyOptions> & {
    type?: 'pickup' | 'delivery';
    unsigned?: true;
    only?: readonly string[];
    integration?: string;
  } = {},
): Promise<Certification> {
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const { type, unsigned, only, integration } = about;
  const bridge: Bridge = await startBridge(secret, { ...habits, ...(unsigned && { trusts: true }) });
  try {
    const settings = { ordersUrl: bridge.ordersUrl, ...(unsigned ? { unsigned } : { secret }) };
    await system.addLocation(locationId, settings, integration);
    bridge.webhookUrl = await system.webhookUrl(locationId);
    const wants = (what: string): void => {
      const [status = ''] = what.split(':');
      if (only === undefined || only.includes(status)) bridge.press(status.toUpperCase());
    };
    return await certify(deps, { ...optionsOf(locationId, type), ...about }, { wants, found: () => {} });
  } finally {
    await bridge.stop();
  }
}

const briefly = ({ checks }: Certification): string[] => checks.map(({ check, state }) => `${check}: ${state}`);
const failed = ({ checks }: Certification): string[] =>
  checks.filter(({ state }) => state === 'failed').map(({ check }) => check);

describe.concurrent('a correct bridge passes', () => {
  it('all checks with a pickup order', async () => {
    const certified = await certifyBridge('good', {});
    expect(certified.checks.filter(({ state }) => state !== 'ok')).toEqual([]);
    expect(briefly(certified)).toEqual(
      [
        ['settings', 'wrong token', 'takes the order', 'at once', 'takes it once'],
        ['received', 'duplicate', 'bad signature', 'in_progress', 'late', 'ready', 'completed', 'after a 500'],
        ['ticket id', 'forged order'],
      ]
        .flat()
        .map((check) => `${check}: ok`),
    );
    const { serviceOrderId = '' } = certified.order ?? {};
    expect(serviceOrderId).toMatch(/^certify-[0-9a-f]{16}$/);
    expect(await system.order(serviceOrderId)).toMatchObject({
      status: 'completed',
      ended_at: expect.any(Date) as Date,
    });
    expect(await system.placement(serviceOrderId)).toMatchObject({ state: 'sent', attempts: 3 });
    await until(() => system.live(serviceOrderId).at(-1)?.memberState === 'picked_up');
    expect(system.platform.requests).toEqual([]);
  });

  it('all checks with a delivery order, which has the additional status en_route', async () => {
    const certified = await certifyBridge('good-delivery', {}, { type: 'delivery' });
    expect(failed(certified)).toEqual([]);
    expect(briefly(certified)).toContain('en_route: ok');
  });

  it('if it answers a repeated order with 409', async () => {
    const certified = await certifyBridge('good-409', {
      answer: (response, { nth, ticket }) =>
        void response
          .writeHead(nth === 1 ? 200 : 409, { 'content-type': 'application/json' })
          .end(JSON.stringify(nth === 1 ? { providerOrderId: ticket } : {})),
    });
    expect(failed(certified)).toEqual([]);
  });

  it('without a secret, and the report says that its webhooks can be forged', async () => {
    const certified = await certifyBridge('good-unsigned', {}, { unsigned: true });
    expect(failed(certified)).toEqual([]);
    expect(certified.checks).toContainEqual({
      check: 'bad signature',
      state: 'skipped',
      found: 'its webhooks are not signed: anyone who knows their URL can change the orders of this location',
    });
  });

  it('although it never sends in_progress, if an option names the statuses that it sends', async () => {
    const statuses = statusesOf('pickup').filter((status) => status !== 'in_progress');
    const certified = await certifyBridge('good-without', {}, { statuses });
    expect(failed(certified)).toEqual([]);
  });

  it('although it also sends an unknown status', async () => {
    const certified = await certifyBridge('talkative', {
      does: (status) => (status === 'READY' ? ['PRINTED', 'READY'] : [status]),
    });
    expect(failed(certified)).toEqual([]);
  });

  it('although it sends all statuses at once, and the check with a 500 is skipped', async () => {
    const all = ['RECEIVED', 'IN_PROGRESS', 'READY', 'COMPLETED'];
    const certified = await certifyBridge('hasty', { does: () => all }, { only: ['received'] });
    expect(failed(certified)).toEqual([]);
    expect(briefly(certified)).toContain('after a 500: skipped');
  });
});

it.concurrent('a bridge whose answer has no ticket id passes, and the checks for a second ticket are skipped', async () => {
  const certified = await certifyBridge('misspelling', {
    answer: (response, { ticket }) => sendJson(response, 200, { providerOrderID: ticket }),
  });
  expect(failed(certified)).toEqual([]);
  const nobody = {
    state: 'skipped',
    found: 'the answer has no id, so it is unknown whether the POS made a second ticket',
  };
  expect(certified.checks).toContainEqual(expect.objectContaining({ check: 'at once', ...nobody }));
  expect(certified.checks).toContainEqual(expect.objectContaining({ check: 'takes it once', ...nobody }));
});

it.concurrent('a bridge that sends all statuses at once in a wrong sequence fails, and the check with a 500 is skipped', async () => {
  const all = ['IN_PROGRESS', 'RECEIVED', 'READY', 'COMPLETED'];
  const certified = await certifyBridge('none-left', { does: () => all }, { only: ['received'] });
  expect(failed(certified)).toEqual(['received']);
  expect(certified.checks).toContainEqual({
    check: 'after a 500',
    state: 'skipped',
    found: 'no status was left that could be answered 500; fix the problems above and run certify again',
  });
});

it.concurrent('a bridge that gives two tickets the same id fails', async () => {
  const numbered = { ticketOf: () => 'No. 1' };
  expect(failed(await certifyBridge('numbered', numbered))).toEqual([]);
  const certified = await certifyBridge('numbered', numbered);
  expect(failed(certified)).toEqual(['ticket id']);
  expect(certified.checks.at(-2)?.found).toBe(`the id "No. 1" already belongs to an earlier order at this POS`);
  expect(certified.checks.at(-2)?.toDo).toMatch(/If your test database was emptied: delete \.certify, or use --dir$/);
});

describe.concurrent('a POS that does not deduplicate', () => {
  it('fails if it cannot find the order that it has just taken', async () => {
    const certified = await certifyBridge('forgetful', {}, { integration: 'forgetful' });
    expect(failed(certified)).toEqual(['takes it once']);
    const { found } = certified.checks.find(({ check }) => check === 'takes it once') ?? {};
    expect(found).toBe('the POS does not find the order by our id');
  });

  it('passes if it has no lookup, and the check for a second ticket is skipped', async () => {
    const certified = await certifyBridge('mute', {}, { integration: 'mute' });
    expect(failed(certified)).toEqual([]);
    expect(briefly(certified)).toContain('takes it once: skipped');
  });
});

describe.concurrent('a POS whose status can be polled', () => {
  it.each([
    { answer: 'completed', state: 'ok' },
    { answer: 'ready', state: 'ok' },
    { answer: 'cancelled', state: 'failed' },
  ] as const)(
    'is polled after the last webhook: if it reports $answer, the check is $state',
    async ({ answer, state }) => {
      const certified = await certifyBridge(`asked-${answer}`, {}, { integration: `asked-${answer}` });
      expect(certified.checks.at(-1)).toMatchObject({
        check: 'can be polled',
        state,
        found: `when polled, the POS reports ${answer}`,
      });
    },
  );

  it('is not polled if the settings have no URL for that', async () => {
    const certified = await certifyBridge('asked-nobody', {}, { integration: 'asked-nobody' });
    expect(briefly(certified)).not.toContain(expect.stringContaining('can be polled'));
    expect(failed(certified)).toEqual([]);
  });

  it('fails if a status came only by polling, without a webhook', async () => {
    const locationId = 'had-to-be-asked';
    const ask = async (): Promise<void> => {
      const [row] = await system.query('SELECT service_order_id FROM orders WHERE location_id = $1', [locationId]);
      const serviceOrderId = String(row?.['service_order_id']);
      const order = sampleOrder();
      const quiet = { serviceOrderId, locationId, integration: 'standard', providerOrderId: null, order };
      await recordPoll(deps.pool, quiet, [{ status: 'received', serviceOrderId, nativeStatus: 'OPEN' }]);
    };
    const does = (status: string): string[] => {
      if (status !== 'RECEIVED') return [status];
      void ask();
      return [];
    };
    const certified = await certifyBridge(locationId, { does });
    expect(failed(certified)).toEqual(['received']);
    const { found } = certified.checks.find(({ check }) => check === 'received') ?? {};
    expect(found).toBe('no webhook reported it: the service had to poll the POS, which reported OPEN');
  });
});

describe.concurrent('the test order', () => {
  it('fails if the POS refuses it, and its webhook token is revoked', async () => {
    const certified = await certifyBridge('refusing', {
      answer: (response) => sendJson(response, 422, { reason: 'We are closed.' }),
    });
    expect(failed(certified)).toEqual(['takes the order']);
    expect(certified.checks.at(-1)?.found).toBe('the POS refused the order with 422: We are closed.');
    const { serviceOrderId = '' } = certified.order ?? {};
    expect(await system.placement(serviceOrderId)).toMatchObject({ state: 'failed', attempts: 2 });
    expect(await system.order(serviceOrderId)).toMatchObject({ ended_at: expect.any(Date) as Date });
    const tokens = await system.query(
      `SELECT revoked_at FROM webhook_tokens WHERE label = 'certify' AND location_id = $1`,
      ['refusing'],
    );
    expect(tokens).toEqual([{ revoked_at: expect.any(Date) as Date }]);
  });

  it('ends if the POS sends no status, and the check "received" fails', async () => {
    const certified = await certifyBridge('silent', { does: () => [] });
    expect(briefly(certified).slice(-6)).toEqual([
      'received: failed',
      'in_progress: skipped',
      'ready: skipped',
      'completed: skipped',
      'ticket id: ok',
      'forged order: ok',
    ]);
    const { serviceOrderId = '' } = certified.order ?? {};
    expect(await system.order(serviceOrderId)).toMatchObject({ status: null, ended_at: expect.any(Date) as Date });
  });

  it('ends when the certification is aborted', async () => {
    const stopping = new AbortController();
    const ending = certifyBridge(
      'stopped',
      {
        does: () => {
          stopping.abort(new Error('stopped'));
          return [];
        },
      },
      { signal: stopping.signal },
    );
    await expect(ending).rejects.toThrow('stopped');
    const [order] = await system.query('SELECT ended_at FROM orders WHERE location_id = $1', ['stopped']);
    expect(order).toEqual({ ended_at: expect.any(Date) as Date });
  });
});

it.concurrent('a certification with wrong settings or a wrong PUBLIC_URL fails before it sends an order', async () => {
  const tell = { wants: () => {}, found: () => {} };
  await system.addLocation('unsent', { ordersUrl: 'http://127.0.0.1:9/' });
  const unreachable = await certify({ ...deps, publicUrl: 'http://127.0.0.1:9' }, optionsOf('unsent'), tell);
  expect(briefly(unreachable)).toEqual(['settings: ok', 'wrong token: failed']);
  const forbidden = await certify({ ...deps, allowedHosts: parseAllowedHosts('') }, optionsOf('unsent'), tell);
  expect(briefly(forbidden)).toEqual(['settings: failed']);
  expect(await system.query('SELECT FROM placements WHERE location_id = $1', ['unsent'])).toEqual([]);
});

describe.concurrent('a certification fails for a bridge that', () => {
  const FORGED = /dropped: not authentic: no signature in webhook-signature is right/;
  it.each(Object.entries(BROKEN))('%s', async (name, broken) => {
    const { check = 'received', found = FORGED, toDo, request, also = [], ...habits } = broken;
    const certified = await certifyBridge(`broken-${name}`, habits);
    expect(failed(certified).toSorted()).toEqual([check, ...also].toSorted());
    const failure = certified.checks.find((each) => each.check === check);
    expect(failure?.found).toMatch(found);
    expect(failure?.toDo).toMatch(toDo);
    expect(failure?.expected).toMatch(/\w/);
    if (request !== undefined) expect(failure?.request).toMatch(request);
    const saysThatNothingCame = (each: Check): boolean => each.found.includes('with a valid token');
    expect(certified.checks.filter((each) => each !== failure).filter(saysThatNothingCame)).toEqual([]);
    expect(JSON.stringify(certified)).not.toMatch(/(whsec|exw)_\w/);
  });
});
