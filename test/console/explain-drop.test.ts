import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { settingsThatVerify } from '../../console/webhooks/explain.ts';
import { outcomeMeaning } from '../../console/webhooks/outcome-meaning.ts';
import type { ShownWebhook } from '../../console/wire.ts';
import {
  NOT_KNOWN,
  NOT_PROVEN,
  NOT_READ,
  NOT_REPLAYABLE,
  explainDrop,
  explainRefusal,
  type Explanation,
} from '../../src/core/domain/explain-webhook.ts';
import { sign } from '../../src/core/domain/standard-webhooks.ts';
import type { Provider } from '../../src/core/domain/provider.ts';
import { DROP_CODES, DropCause, ReplayCause } from '../../src/core/domain/webhook-cause.ts';
import type { WebhookAuth } from '../../src/core/domain/webhook-auth.ts';
import { WEBHOOK_OUTCOMES, type Drop } from '../../src/core/domain/webhook.ts';
import { verifyAndTranslate } from '../../src/core/statuses/translate-webhook-request.ts';
import { registry } from '../../src/providers/index.ts';
import { POS_NAMES, SIMULATORS } from '../../world/pos/index.ts';
import { OPERATOR_TOKEN, askOperator, type Operator } from '../../world/system/ask-operator.ts';
import { runCli } from '../support/run-cli.ts';
import { signWebhook } from '../../world/pos/sign-webhook.ts';
import { post, startSystem, statusWebhook, type System } from '../../world/system/start-system.ts';
import { labelOf } from '../../src/core/domain/label-of.ts';

const ABOUT = { webhookId: '019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33', locationId: 'club-1', integration: 'standard' };
const NOW = new Date('2026-01-31T18:30:00Z');
const WRONG_SIGNATURE = "The signature does not match this location's secret";
const SECONDS = NOW.getTime() / 1000;
const secretOf = (byte: number): string => `whsec_${Buffer.alloc(24, byte).toString('base64')}`;
const settingsOf = new Map<string, Readonly<Record<string, unknown>>>();

beforeAll(async () => {
  for (const name of POS_NAMES) {
    const pos = await SIMULATORS[name]();
    settingsOf.set(name, pos.settings);
    await pos.stop();
  }
});

it.each([
  ['standard', ['secret', 'previousSecret']],
  ['toast', ['webhookSecret']],
  ['square', ['signatureKey', 'notificationUrl']],
  ['lightspeed-k', ['webhookUsername', 'webhookPassword']],
  ['hubrise', ['clientSecret']],
  ['deliverect', ['hmacSecret']],
])('the repair of dropped webhooks of %s offers each setting that can verify them', (integration, names) => {
  const { webhookAuth = null } = registry.get(integration) ?? {};
  const offered = settingsThatVerify({ webhookAuth, cause: { code: 'signature_wrong' } }).flat();
  expect(offered.filter((name) => typeof name === 'string')).toEqual(names);
});

type Sent = {
  integration: string;
  url?: string;
  headers?: Record<string, string>;
  body?: unknown;
  settings?: Record<string, unknown>;
  /** Skips the signature check, so that only the body is wrong. */
  verified?: true;
};

/** The reason for which the provider drops it. */
function dropOf({
  integration,
  url = 'https://us.example.com/w',
  headers = {},
  body = {},
  settings = {},
  verified,
}: Sent): Drop {
  const provider = registry.get(integration) as Provider;
  const parsed = provider.settings.parse({ ...settingsOf.get(integration), ...settings });
  const { dropped } = verifyAndTranslate(provider, parsed, {
    headers,
    body: Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
    url,
    receivedAt: NOW,
    verified: verified ?? false,
  });
  return dropped ?? expect.unreachable('it was not dropped');
}

/** The explanation in the console. */
function explained(sent: Sent): Explanation {
  const { integration } = sent;
  const { webhookAuth = null } = registry.get(integration) ?? {};
  return explainDrop(dropOf(sent), { ...ABOUT, integration, webhookAuth });
}

const signed = (headers: Record<string, string>): Record<string, string> => ({
  'webhook-id': 'msg-1',
  'webhook-timestamp': String(SECONDS),
  'webhook-signature': 'v1,AAAA',
  ...headers,
});

describe('the explanation of a dropped webhook', () => {
  it.each(POS_NAMES)(
    'an unsigned webhook of %s is explained differently from a webhook with a wrong signature',
    (integration) => {
      const { kind, header = '', settings = [] } = registry.get(integration)?.webhookAuth ?? {};
      const body = { timestamp: 'now' };
      const isPassword = kind === 'password';
      const missing = explained({ integration, body });
      expect(missing.what).toBe(isPassword ? 'The user name and password are missing' : 'Not signed');
      const wrong = explained({ integration, body, headers: signed({ [header]: isPassword ? 'Basic eDp5' : '0' }) });
      expect(wrong.what).toBe(isPassword ? 'The user name or password is wrong' : WRONG_SIGNATURE);
      for (const { details, toDo } of [missing, wrong]) {
        for (const name of settings) expect(details.join()).toContain(`“${labelOf(name)}”`);
        expect(toDo.length).toBeGreaterThan(0);
      }
    },
  );

  const SECRET = secretOf(1);
  const standardAt = (time: string): Sent => ({
    integration: 'standard',
    settings: { secret: SECRET },
    headers: signed({ 'webhook-timestamp': time, 'webhook-signature': sign([SECRET], 'msg-1', time, '{}') }),
  });
  const verified = (integration: string, body: unknown): Sent => ({ integration, verified: true, body });
  const statusOf = (order: object): Sent => verified('standard', { eventType: 'order.status', order });
  const noOrder = { resource_type: 'order', event_type: 'update', new_state: { status: 'accepted' } };

  it.each<[what: string, sent: Sent]>([
    ['The time of its signature is missing', { integration: 'toast' }],
    ['The time of its signature is missing', standardAt('now')],
    ['Signed more than 5 minutes before it arrived', standardAt(String(SECONDS - 301))],
    ['Signed with a time more than 5 minutes ahead', standardAt(String(SECONDS + 301))],
    ['The signing key of the POS is not stored yet', { integration: 'square', settings: { signatureKey: undefined } }],
    [
      'The signed address is not known',
      { integration: 'square', url: '/webhook/x', settings: { notificationUrl: undefined } },
    ],
    ['The JSON is nested too deeply', verified('hubrise', '['.repeat(200))],
    ['The body is not text', verified('standard', Buffer.from([0xff, 0xfe, 0x41]))],
    ['The body is not JSON', verified('standard', 'status=READY')],
    ['The body is not JSON', verified('toast', '')],
    ['It names no order', statusOf({ status: 'READY', thirdPartyReference: '' })],
    ['It names no order', verified('hubrise', noOrder)],
    ['It names no order', verified('deliverect', { channelOrderId: '', status: 20 })],
    ['It names no order', verified('lightspeed-k', { status: 'SUCCESS' })],
    ...['standard', 'hubrise', 'square', 'toast', 'lightspeed-k'].map((integration): [string, Sent] => [
      'Not in the format of this POS',
      verified(integration, {}),
    ]),
    ['Not in the format of this POS', verified('deliverect', { orderId: 7, status: 'x' })],
    ['Not in the format of this POS', statusOf({ status: 'READY', id: 'a\0b' })],
    ['Not in the format of this POS', statusOf({ status: ['READY'], id: 'a' })],
    ['Not in the format of this POS', verified('standard', [])],
  ])('says "%s" for the webhook %o', (what, sent) => {
    const { what: said, toDo } = explained(sent);
    expect(said).toBe(what);
    expect(toDo.length).toBeGreaterThan(0);
  });

  it('covers too many events, a wrong result and a bug of the provider', () => {
    const standard = registry.get('standard') as Provider;
    const of = (translateWebhook: () => unknown): string =>
      explainDrop(
        verifyAndTranslate({ ...standard, translateWebhook } as Provider, undefined, {
          headers: {},
          body: Buffer.alloc(0),
          url: '/',
          receivedAt: NOW,
          verified: true,
        }).dropped ?? expect.unreachable('it was not dropped'),
        ABOUT,
      ).what;
    const event = { status: 'ready', nativeStatus: 'READY', serviceOrderId: 'order-1' };
    expect(of(() => Array.from({ length: 60 }, () => event))).toBe('60 status changes: at most 50 are accepted');
    expect(of(() => [{ ...event, serviceOrderId: undefined }])).toBe('Not in the format of this POS');
    expect(of(() => (undefined as unknown as { length: number }).length)).toBe('The provider has a bug');
    expect(of(async () => [])).toBe('The provider has a bug');
    expect(of(() => 7)).toBe('Not in the format of this POS');
  });

  it('names each wrong field, and what is required', () => {
    const about = { order_id: 'x'.repeat(256), location_id: 7, state: 7 };
    const updated = { type: 'order.updated', data: { object: { order_updated: about } } };
    expect(explained(verified('square', updated)).details).toEqual([
      'data.object.order_updated.order_id is longer than 255 characters.',
      'data.object.order_updated.location_id is a number; a string is required.',
      'data.object.order_updated.state is a number; a string is required.',
    ]);
  });

  it.each(DROP_CODES)('has words for the code %s', (code) => {
    const { what, details, toDo } = explainDrop({ cause: DropCause.parse(sample(code)), reason: 'it' }, ABOUT);
    expect(what).not.toBe(NOT_KNOWN);
    expect(toDo.length).toBeGreaterThan(0);
    expect([what, ...details, ...toDo.map(({ say }) => say)].join()).not.toMatch(/undefined|NaN|\[object/);
  });

  it('names the limit in bytes if the body was too large', () => {
    const tooLarge = { cause: { code: 'too_large', limit: 2_000 }, reason: null };
    const details = ['It has more than 2,000 bytes. Only its beginning is stored.'];
    expect(explainDrop(tooLarge, ABOUT)).toMatchObject({ what: 'Too large', details });
  });

  it.each<[object | null, reason: string | null, what: string, quoted: string]>([
    [{ code: 'of_a_newer_version', with: 'details' }, 'a new reason', NOT_KNOWN, 'The service reports: a new reason.'],
    [{ code: 'constructor' }, null, NOT_KNOWN, 'No reason is stored.'],
    [{ code: '__proto__' }, null, NOT_KNOWN, 'No reason is stored.'],
    [null, null, NOT_KNOWN, 'No reason is stored.'],
    [{ code: 'not_authentic' }, 'not authentic: the moon is not full', NOT_PROVEN, 'the moon is not full'],
    [{ code: 'unreadable' }, 'unreadable: half of it is missing', NOT_READ, 'half of it is missing'],
  ])(
    'quotes the stored reason for an unknown code or a third-party provider: %j, %j',
    (cause, reason, what, quoted) => {
      const details = [expect.stringContaining(quoted)];
      expect(explainDrop({ cause: cause as Drop['cause'], reason }, ABOUT)).toMatchObject({ what, details });
    },
  );

  it('names the settings that the provider declares for authentication, or else only the secret', () => {
    const said = (code: string, webhookAuth: WebhookAuth | null): string =>
      JSON.stringify(
        explainDrop({ cause: { code, header: 'x-signature' } as DropCause, reason: null }, { ...ABOUT, webhookAuth }),
      );
    const told = {
      kind: 'signature',
      header: 'x-signature',
      settings: ['one', 'two'],
      optional: true,
      previousSetting: 'oneBefore',
      urlSetting: 'signedUrl',
      byConnect: true,
    } as const;
    const ofWrong = ['“One” and “Two”', '“One before”', 'signedUrl', 'provider connect'];
    for (const words of ofWrong)
      expect(said('signature_wrong', { ...told, settings: [...told.settings] })).toContain(words);
    for (const words of ofWrong) expect(said('signature_wrong', null)).not.toContain(words);
    expect(said('signature_wrong', null)).toContain('the secret');
    const withoutSecret = 'remove the secret';
    expect(said('signature_missing', { ...told, settings: ['one'] })).toContain(withoutSecret);
    expect(said('signature_missing', null)).not.toContain(withoutSecret);
  });
});

describe('the explanation of a refused replay', () => {
  it.each(ReplayCause.options.map(({ shape }) => shape.code.value))('has words for the code %s', (code) => {
    const { what, details } = explainRefusal({ cause: ReplayCause.parse(sample(code)), refused: 'it' }, ABOUT);
    expect(what).not.toBe(NOT_REPLAYABLE);
    expect([what, ...details].join()).not.toMatch(/undefined|NaN|\[object/);
  });

  it('quotes the stored reason for an unknown code', () => {
    expect(explainRefusal({ cause: { code: 'of_a_newer_version' }, refused: 'a new one' }, ABOUT)).toMatchObject({
      what: NOT_REPLAYABLE,
      details: ['The service reports: a new one.'],
    });
  });
});

/** A cause of this code with the details of all codes: the schema picks its own. */
function sample(code: string): object {
  return {
    code,
    header: 'x-signature',
    seconds: 300,
    field: 'timestamp',
    setting: 'signatureKey',
    limit: 50,
    wanted: 'an object',
    fields: ['order.id', 'order.reference'],
    count: 60,
    issues: [
      { path: 'order.id', received: 'number', expected: 'string' },
      { path: '', received: 'string', says: 'is no list' },
    ],
    error: 'TypeError',
    sqlstate: '23514',
    keyId: 'k1',
    integration: 'acme',
    state: 'revoked',
    tokenId: '0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11',
  };
}

it.each(WEBHOOK_OUTCOMES)('the console explains the webhook outcome %s', (outcome) => {
  expect(outcomeMeaning(outcome, null)).toMatch(/\.$/);
});

describe('the explanation of a webhook that a service dropped', () => {
  let system: System;
  let operator: Operator;
  beforeAll(async () => {
    system = await startSystem({ env: { OPERATOR_TOKEN } });
    operator = await askOperator(system.urls[0] ?? '');
  });
  afterAll(() => system?.stop());

  it('has a command that corrects a wrong secret', async () => {
    const locationId = `it's a club-${randomUUID()}`;
    const serviceOrderId = `order-${randomUUID()}`;
    const ordersUrl = 'http://127.0.0.1:9/orders';
    await system.addLocation(locationId, { ordersUrl, secret: secretOf(2) });
    await system.seedOrder({ serviceOrderId, locationId });
    const body = JSON.stringify(statusWebhook({ serviceOrderId, status: 'READY' }));
    const { body: answer } = await post(await system.webhookUrl(locationId), body, signWebhook(secretOf(1), body));
    const shown = await operator.get(`/webhooks/${String(answer['webhookId'])}`);
    const webhook = shown.body as unknown as ShownWebhook;
    const { what, toDo } = explainDrop(webhook, webhook);
    expect(what).toBe(WRONG_SIGNATURE);

    const commands = toDo.flatMap(({ run }) => (run === undefined ? [] : [run]));
    expect(commands).toHaveLength(1);
    const [words = ''] = commands.join('').split(' < settings.json');
    const ended = await runCli(system.env, argumentsOf(words), JSON.stringify({ secret: secretOf(1) }));
    expect(ended).toMatchObject({ code: 0 });
    const replayed = await operator.post(`/webhooks/${String(answer['webhookId'])}/replay`, {});
    expect(replayed.body).toMatchObject({ outcome: 'applied', reason: null });
  });
});

/** Splits a command line as a shell does. */
function argumentsOf(command: string): string[] {
  const words = command.match(/(?:[^\s'\\]|\\.|'[^']*')+/g) ?? [];
  return words.slice(1).map((word) => word.replaceAll(/\\(.)|'([^']*)'/g, '$1$2'));
}
