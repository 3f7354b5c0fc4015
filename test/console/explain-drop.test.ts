import { randomUUID } from 'node:crypto';
import { readFile, readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { NOT_KNOWN, NOT_PROVEN, NOT_READ, VERIFIED_WITH, explainDrop } from '../../console/webhooks/explain-drop.ts';
import { NOT_REPLAYABLE, explainRefusal } from '../../console/webhooks/explain-refusal.ts';
import { outcomeMeaning } from '../../console/webhooks/outcome-meaning.ts';
import { WEBHOOK_OUTCOMES } from '../../src/core/domain/webhook.ts';
import type { Provider } from '../../src/core/domain/provider.ts';
import { verifyAndTranslate } from '../../src/core/statuses/verify-and-translate.ts';
import { registry } from '../../src/providers/index.ts';
import { OPERATOR_TOKEN, askOperator, type Operator } from '../support/ask-operator.ts';
import { runCli } from '../support/run-cli.ts';
import { signWebhook } from '../support/sign-webhook.ts';
import { post, startSystem, statusWebhook, type System } from '../support/start-system.ts';

const ABOUT = { webhookId: '019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33', locationId: 'club-1', integration: 'standard' };
const GENERAL = [NOT_KNOWN, NOT_PROVEN, NOT_READ, NOT_REPLAYABLE];
const NOW = new Date('2026-01-31T18:30:00Z');
const SECONDS = NOW.getTime() / 1000;
const secretOf = (byte: number): string => `whsec_${Buffer.alloc(24, byte).toString('base64')}`;
const GUID = '9c59d4ab-8242-450f-8f36-b16e1b3ab802';

const SETTINGS: Record<string, Record<string, unknown>> = {
  standard: { ordersUrl: 'https://pos.example.com/orders', secret: secretOf(1) },
  hubrise: { accessToken: 'a', clientSecret: 's' },
  square: { accessToken: 'a', locationId: 'L1', signatureKey: 's', notificationUrl: 'https://us.example.com/w' },
  toast: {
    baseUrl: 'https://toast.example.com',
    clientId: 'c',
    clientSecret: 's',
    restaurantGuid: GUID,
    webhookSecret: 's',
    diningOptionGuids: { pickup: GUID, delivery: GUID },
  },
  deliverect: { clientId: 'c', clientSecret: 's', channelName: 'us', channelLinkId: 'L1', hmacSecret: 's' },
  'lightspeed-k': {
    clientId: 'c',
    clientSecret: 's',
    refreshToken: 'r',
    businessLocationId: '1',
    endpointId: 'us',
    webhookUsername: 'user',
    webhookPassword: 'word',
    paymentMethod: 'PAID',
  },
};

type Sent = {
  integration: string;
  headers?: Record<string, string>;
  body?: unknown;
  settings?: Record<string, unknown>;
  /** Signed rightly, so that its body is what is wrong. */
  verified?: true;
};

/** Why the providers themselves drop it. */
function reasonOf({ integration, headers = {}, body = {}, settings = {}, verified }: Sent): string {
  const provider = registry.get(integration) as Provider;
  const parsed = provider.settings.parse({ ...SETTINGS[integration], ...settings });
  const { dropped } = verifyAndTranslate(provider, parsed, {
    headers,
    body: Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
    url: '/webhook/x',
    receivedAt: NOW,
    verified: verified ?? false,
  });
  return dropped ?? expect.unreachable('it was not dropped');
}

const signed = (headers: Record<string, string>): Record<string, string> => ({
  'webhook-id': 'msg-1',
  'webhook-timestamp': String(SECONDS),
  'webhook-signature': 'v1,AAAA',
  ...headers,
});

describe('why it was dropped', () => {
  it.each<[what: string, sent: Sent]>([
    ['It is not signed', { integration: 'standard' }],
    ['It is not signed', { integration: 'hubrise' }],
    ['It is not signed', { integration: 'square' }],
    ['It is not signed', { integration: 'toast', body: { timestamp: 'now' } }],
    ['It is not signed', { integration: 'deliverect' }],
    ['It came without a user name and a password', { integration: 'lightspeed-k' }],
    [
      'Its user name or password is not ours',
      { integration: 'lightspeed-k', headers: { authorization: 'Basic eDp5' } },
    ],
    ['It is signed with another secret than ours', { integration: 'standard', headers: signed({}) }],
    [
      'It is signed with another secret than ours',
      { integration: 'hubrise', headers: { 'x-hubrise-hmac-sha256': '0' } },
    ],
    [
      'It is signed with another secret than ours',
      { integration: 'square', headers: { 'x-square-hmacsha256-signature': '0' } },
    ],
    [
      'It is signed with another secret than ours',
      { integration: 'toast', headers: { 'toast-signature': '0' }, body: { timestamp: 'now' } },
    ],
    [
      'It is signed with another secret than ours',
      { integration: 'deliverect', headers: { 'x-server-authorization-hmac-sha256': '0' } },
    ],
    ['It does not say when it was signed', { integration: 'toast' }],
    [
      'It does not say when it was signed',
      { integration: 'standard', headers: signed({ 'webhook-timestamp': 'now' }) },
    ],
    [
      'It was signed more than 5 minutes before it came',
      { integration: 'standard', headers: signed({ 'webhook-timestamp': String(SECONDS - 301) }) },
    ],
    [
      'It says that it was signed more than 5 minutes after it came',
      { integration: 'standard', headers: signed({ 'webhook-timestamp': String(SECONDS + 301) }) },
    ],
    ['We do not know yet what the POS signs with', { integration: 'square', settings: { signatureKey: undefined } }],
    [
      'We do not know which address the signature covers',
      { integration: 'square', settings: { notificationUrl: undefined } },
    ],
    ['Its JSON is nested too deep to be a webhook', { integration: 'hubrise', verified: true, body: '['.repeat(200) }],
    ['Its body is no text', { integration: 'standard', verified: true, body: Buffer.from([0xff, 0xfe, 0x41]) }],
    ['Its body is not JSON', { integration: 'standard', verified: true, body: 'status=READY' }],
    ['Its body is not JSON', { integration: 'toast', verified: true, body: '' }],
    [
      'It does not say which order it is about',
      {
        integration: 'standard',
        verified: true,
        body: { eventType: 'order.status', order: { status: 'READY', thirdPartyReference: '' } },
      },
    ],
    [
      'It does not say which order it is about',
      {
        integration: 'hubrise',
        verified: true,
        body: { resource_type: 'order', event_type: 'update', new_state: { status: 'accepted' } },
      },
    ],
    [
      'It does not say which order it is about',
      { integration: 'deliverect', verified: true, body: { channelOrderId: '', status: 20 } },
    ],
    [
      'It does not say which order it is about',
      { integration: 'lightspeed-k', verified: true, body: { status: 'SUCCESS' } },
    ],
    ...['standard', 'hubrise', 'square', 'toast', 'lightspeed-k'].map((integration): [string, Sent] => [
      'It is not what this POS usually sends',
      { integration, verified: true },
    ]),
    [
      'It is not what this POS usually sends',
      { integration: 'deliverect', verified: true, body: { orderId: 7, status: 'x' } },
    ],
    [
      'It is not what this POS usually sends',
      {
        integration: 'standard',
        verified: true,
        body: { eventType: 'order.status', order: { status: 'READY', id: 'a\0b', occurredAt: 'yesterday' } },
      },
    ],
    ['It is not what this POS usually sends', { integration: 'standard', verified: true, body: [] }],
  ])('%s: %o', (what, sent) => {
    const explained = explainDrop(reasonOf(sent), { ...ABOUT, integration: sent.integration });
    expect(explained.what).toBe(what);
    expect(explained.toDo.length).toBeGreaterThan(0);
  });

  it('of what any provider may do, in words as well', () => {
    const standard = registry.get('standard') as Provider;
    const of = (translateWebhook: () => unknown): string =>
      explainDrop(
        verifyAndTranslate({ ...standard, translateWebhook } as Provider, undefined, {
          headers: {},
          body: Buffer.alloc(0),
          url: '/',
          receivedAt: NOW,
          verified: true,
        }).dropped ?? null,
        ABOUT,
      ).what;
    const event = { status: 'ready', nativeStatus: 'READY', serviceOrderId: 'order-1' };
    expect(of(() => Array.from({ length: 60 }, () => event))).toBe(
      'It reports 60 changes at once, and at most 50 are taken',
    );
    expect(of(() => [{ ...event, serviceOrderId: undefined }])).toBe('It is not what this POS usually sends');
    expect(of(() => (undefined as unknown as { length: number }).length)).toBe('What reads it has a mistake');
    expect(of(async () => [])).toBe('What reads it has a mistake');
    expect(of(() => 7)).toBe('It is not what this POS usually sends');
  });

  it('names each field that is wrong, and what it should be', () => {
    const body = { eventType: 'order.status', order: { id: 7, thirdPartyReference: 'x'.repeat(256), occurredAt: 'x' } };
    const reason = reasonOf({ integration: 'standard', verified: true, body });
    expect(explainDrop(reason, ABOUT).details).toEqual([
      'order.thirdPartyReference is longer than 255 characters.',
      'order.id is a number; a string is required.',
      'order.status is missing; a string is required.',
      'order.occurredAt is a string, but no RFC 3339 time with offset such as 2026-01-31T18:30:00Z.',
    ]);
  });

  it('is said of every sentence in the code that drops one', async () => {
    const thrown = await Promise.all(
      ['src/core', 'src/providers'].map((folder) =>
        literalsIn(folder, /new (NotAuthentic|Poison)\(\s*([`'"])(.*?)\2[,)\s]/gs),
      ),
    );
    const reasons = thrown
      .flat()
      .map(([, kind, , text]) => (kind === 'Poison' ? `unreadable: ${text}` : `not authentic: ${text}`));
    const dropped = await Promise.all(
      ['src/core', 'src/http'].map((folder) =>
        literalsIn(folder, /(?:const dropped = |dropped: |asDropped\(\w+, )()([`'"])(.+?)\2/gs),
      ),
    );
    reasons.push(...dropped.flat().map(([, , , text]) => String(text)));
    expect(reasons.length).toBeGreaterThan(20);
    for (const reason of reasons) {
      // Whatever stands in for what the sentence has in its holes.
      const { what } = explainDrop(
        reason.replaceAll(/\$\{[^}]*\?[^}]*\}/g, 'old').replaceAll(/\$\{[^}]*\}/g, '7'),
        ABOUT,
      );
      expect(GENERAL, `explain-drop.ts has no words for: ${reason}`).not.toContain(what);
    }
  });

  it('is quoted where nobody knows it, and of a provider of somebody else', () => {
    expect(explainDrop('a new reason', ABOUT)).toMatchObject({
      what: NOT_KNOWN,
      details: ['The service says: a new reason.'],
    });
    expect(explainDrop(null, ABOUT)).toMatchObject({ what: NOT_KNOWN, details: ['No reason is kept.'] });
    expect(explainDrop('not authentic: the moon is not full', ABOUT)).toMatchObject({
      what: NOT_PROVEN,
      details: [expect.stringContaining('the moon is not full')],
    });
    expect(explainDrop('unreadable: half of it is missing', ABOUT)).toMatchObject({
      what: NOT_READ,
      details: [expect.stringContaining('half of it is missing')],
    });
  });

  it('names settings that there are, of every integration', () => {
    expect([...VERIFIED_WITH.keys()].toSorted()).toEqual([...registry.keys()].toSorted());
    for (const [integration, names] of VERIFIED_WITH) {
      const { properties } = z.toJSONSchema(
        (registry.get(integration) as Provider & { settings: z.ZodType }).settings,
        {
          io: 'input',
          unrepresentable: 'any',
        },
      );
      for (const name of names.split(' and ')) expect(Object.keys(properties ?? {}), integration).toContain(name);
    }
  });
});

describe('why it cannot be replayed', () => {
  it('is said of every sentence in the code that refuses one', async () => {
    const literals = await literalsIn(
      'src/core',
      /(?:refused: |new WrongLocation\(\s*|new CannotUnseal\(|GONE = |return )()([`'"])(.+?)\2/gs,
      ['retranslate.ts', 'locations.ts', 'stored-webhook.ts', 'replay-webhooks.ts'],
    );
    const refusals = literals
      .map(([, , , text]) => String(text))
      // What is said of a location's id before anything is looked up, and of one that is not replayed to.
      .filter((text) => !/^(location: |no location is called)/.test(text));
    expect(refusals.length).toBeGreaterThan(9);
    for (const refusal of refusals) {
      const { what } = explainRefusal(refusal.replaceAll(/\$\{.*?\}/g, '7'), ABOUT);
      expect(GENERAL, `explain-refusal.ts has no words for: ${refusal}`).not.toContain(what);
    }
  });

  it('is quoted where nobody knows it', () => {
    expect(explainRefusal('a new one', ABOUT)).toMatchObject({
      what: NOT_REPLAYABLE,
      details: ['The service says: a new one.'],
    });
  });
});

it.each(WEBHOOK_OUTCOMES)('says what %s means', (outcome) => {
  expect(outcomeMeaning(outcome, null)).toMatch(/\.$/);
});

/** Every match in a folder's sources. */
async function literalsIn(folder: string, pattern: RegExp, names?: string[]): Promise<RegExpMatchArray[]> {
  const root = join(import.meta.dirname, '../..', folder);
  const files = (await readdir(root, { recursive: true })).filter(
    (name) => name.endsWith('.ts') && (names === undefined || names.includes(basename(name))),
  );
  const sources = await Promise.all(files.map((name) => readFile(join(root, name), 'utf8')));
  return sources.flatMap((source) => [...source.matchAll(pattern)]);
}

describe('with a service', () => {
  let system: System;
  let operator: Operator;
  beforeAll(async () => {
    system = await startSystem({ env: { OPERATOR_TOKEN, WEBHOOK_BODY_LIMIT: '2000' } });
    operator = await askOperator(system.urls[0] ?? '');
  });
  afterAll(() => system?.stop());

  /** What the console makes of what the API says. */
  async function explained(webhookId: unknown): Promise<ReturnType<typeof explainDrop>> {
    const { body } = await operator.get(`/webhooks/${String(webhookId)}`);
    const { reason, locationId, integration } = body as { reason: string; locationId: string; integration: string };
    return explainDrop(reason, { webhookId: String(webhookId), locationId, integration });
  }

  it('the commands that it says mend a wrong secret, as they stand', async () => {
    const locationId = `it's a club-${randomUUID()}`;
    const serviceOrderId = `order-${randomUUID()}`;
    const ordersUrl = 'http://127.0.0.1:9/orders';
    await system.addLocation(locationId, { ordersUrl, secret: secretOf(2) });
    await system.seedOrder({ serviceOrderId, locationId });
    const body = JSON.stringify(statusWebhook({ serviceOrderId, status: 'READY' }));
    const { body: answer } = await post(await system.webhookUrl(locationId), body, signWebhook(secretOf(1), body));
    const { what, toDo } = await explained(answer['webhookId']);
    expect(what).toBe('It is signed with another secret than ours');

    const commands = toDo.flatMap(({ run }) => (run === undefined ? [] : [run]));
    expect(commands).toHaveLength(2);
    for (const command of commands) {
      const args = argumentsOf(command);
      const settings = JSON.stringify({ ordersUrl, secret: secretOf(1) });
      const ended = await runCli(
        system.env,
        args.map((each) => (each === 'settings.json' ? '-' : each)),
        settings,
      );
      expect(ended).toMatchObject({ code: 0 });
    }
    const replayed = await operator.post(`/webhooks/${String(answer['webhookId'])}/replay`, {});
    expect(replayed.body).toMatchObject({ outcome: 'applied', reason: null });
  });

  it('what was too large is said to be', async () => {
    const locationId = `club-${randomUUID()}`;
    await system.addLocation(locationId, { ordersUrl: 'http://127.0.0.1:9/orders' });
    const url = await system.webhookUrl(locationId);
    const large = await post(url, 'x'.repeat(3_000));
    expect(await explained(large.body['webhookId'])).toMatchObject({
      what: 'It is too large',
      details: ['It is over 2,000 bytes, and only its beginning is kept.'],
    });
  });
});

/** A command line of one program, as a shell reads it. */
function argumentsOf(command: string): string[] {
  const words = command.match(/(?:[^\s'\\]|\\.|'[^']*')+/g) ?? [];
  return words.slice(1).map((word) => word.replaceAll(/\\(.)|'([^']*)'/g, '$1$2'));
}
