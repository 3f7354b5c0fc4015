import { globSync, readFileSync } from 'node:fs';
import { getSystemErrorMap } from 'node:util';
import { errors } from 'undici';
import { describe, expect, it } from 'vitest';
import { explainFailure, inPlainWords, saysOf } from '../../../src/core/domain/explain-failure.ts';
import { CONFIG_NAMES } from '../../../src/config/config.ts';
import { describeCause, helpWith } from '../../../src/core/domain/explain-cause.ts';
import { explainDrop } from '../../../src/core/domain/explain-webhook.ts';
import { PlacementCause, RefusalCause } from '../../../src/core/domain/placement-cause.ts';
import { DropCause } from '../../../src/core/domain/webhook-cause.ts';
import { machineWordsIn } from '../../system/machine-words.ts';

/** Texts that are only in the description of an API. */
const API_DOCS = /AVAILABILITY_TOKEN|FOLLOW_TOKEN_AUDIENCE|`[A-Z_]+`|PII_RETENTION_DAYS/;

const says = (text: string): string => explainFailure(text).says;
const fails = (code: string, end = 'no answer'): string => says(`POST http://10.0.0.7/orders: ${code}: ${end}`);

/** By Node's documentation of `tls`, and of OpenSSL's verification errors. */
const TLS_CODES = [
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_CRL',
  'UNABLE_TO_DECRYPT_CERT_SIGNATURE',
  'CERT_SIGNATURE_FAILURE',
  'CERT_NOT_YET_VALID',
  'CERT_HAS_EXPIRED',
  'CRL_NOT_YET_VALID',
  'CRL_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_CHAIN_TOO_LONG',
  'CERT_REVOKED',
  'INVALID_CA',
  'PATH_LENGTH_EXCEEDED',
  'INVALID_PURPOSE',
  'CERT_UNTRUSTED',
  'CERT_REJECTED',
  'HOSTNAME_MISMATCH',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'EPROTO',
  'ERR_TLS_HANDSHAKE_TIMEOUT',
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
];
const DNS_CODES = ['ENOTFOUND', 'EAI_AGAIN', 'EAI_FAIL', 'ENODATA', 'ESERVFAIL', 'EREFUSED', 'ETIMEOUT'];
const UNDICI_CODES = Object.values(errors).flatMap((each) => {
  const { code } = new (each as unknown as new (...about: unknown[]) => { code?: string })('x', 500, {});
  return typeof code === 'string' ? [code] : [];
});

it.each([
  ['the POS refused the order with 422', 'The POS refused the order.'],
  [
    'Square refused the order with 400 INVALID_VALUE (order.ticket_name)',
    'Square refused the order with invalid value',
  ],
  ['HubRise refused the order with 422 unprocessable_entity', 'HubRise refused the order with unprocessable entity.'],
  ['Deliverect refused the order with 400 for items', 'Deliverect refused the order for items.'],
])('a refusal says no status of HTTP, which is under its details: %s', (text, words) => {
  expect(says(text)).toContain(words);
  expect(explainFailure(text).details).toBe(text);
});

describe('a failed request to a POS', () => {
  it('that ended without an answer says so, and keeps its code for a technician', () => {
    expect(explainFailure('POST http://10.0.0.7/orders: UND_ERR_SOCKET: no answer')).toEqual({
      says: 'The POS closed the connection without an answer.',
      details: 'POST http://10.0.0.7/orders: UND_ERR_SOCKET: no answer',
    });
  });

  it.each([
    ['ENOTFOUND', 'The host name of the POS is unknown.'],
    ['EAI_AGAIN', 'The name server gave no address of the POS.'],
    ['ECONNREFUSED', 'The POS refused the connection: no program listens at its address.'],
    ['ECONNRESET', 'The POS closed the connection without an answer.'],
    ['UND_ERR_CONNECT_TIMEOUT', 'The POS did not take the connection in time.'],
    ['UND_ERR_HEADERS_TIMEOUT', 'The POS did not answer in time.'],
    ['EHOSTUNREACH', 'The network has no way to the POS.'],
    ['CERT_HAS_EXPIRED', 'The certificate of the POS has expired, or is not valid yet.'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'The certificate of the POS is for another host name.'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'The certificate of the POS is not trusted.'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'The POS and the service found no common form of TLS.'],
    ['HPE_INVALID_CONSTANT', 'The POS did not answer in HTTP.'],
    ['EMFILE', 'This service had no room for another connection.'],
  ])('%s: %s', (code, sentence) => {
    expect(fails(code)).toBe(sentence);
    expect(fails(code, 'no connection')).toBe(sentence);
  });

  it('with an unknown code claims no more than is known', () => {
    expect(fails('EBRANDNEW')).toBe('The connection to the POS broke, and no answer came.');
    expect(fails('EBRANDNEW', 'no connection')).toBe('No connection to the POS could be made.');
    expect(explainFailure('GET https://a.example/…: EBRANDNEW: no answer').details).toContain('EBRANDNEW');
  });

  it('has a sentence without codes for each code of Node, undici, TLS and DNS', () => {
    const node = [...getSystemErrorMap().values()].map(([code]) => code);
    const codes = [...node, ...UNDICI_CODES, ...TLS_CODES, ...DNS_CODES];
    expect(codes.length).toBeGreaterThan(120);
    const sentences = codes.flatMap((code) => [fails(code), fails(code, 'no connection')]);
    expect(machineWordsIn(sentences)).toEqual([]);
    expect(sentences.filter((sentence) => !/^[A-Z].*\.$/.test(sentence))).toEqual([]);
    const TLS = new Set([...TLS_CODES, ...DNS_CODES].map((code) => fails(code)));
    expect([...TLS].filter((sentence) => sentence.includes('broke'))).toEqual([]);
  });

  it.each([
    ['the POS answered 503', 'The POS answered with an error of its own.'],
    ['the POS answered 404', 'The POS has nothing at this address.'],
    ['the POS answered 422', 'The POS did not accept the request.'],
    ['the POS answered 401', 'The POS denies us access.'],
    [
      'the POS answered 308: the URL is wrong',
      'The POS answered with a redirect, which is not followed. Correct its URL.',
    ],
    ['no answer in time', 'The POS did not answer in time.'],
    ['the connection broke: no answer', 'The connection to the POS broke, and no answer came.'],
    ['the settings give an invalid URL or header', 'The settings give an invalid URL or header.'],
  ])('"%s": %s', (said, sentence) => {
    expect(says(`POST https://pos.example.com/orders/{id}: ${said}`)).toBe(sentence);
  });
});

describe('another problem', () => {
  it.each([
    [
      'the deadline has passed; last problem: POST http://10.0.0.7/orders: the POS answered 503',
      'The deadline has passed; before: the POS answered with an error of its own.',
    ],
    [
      'the POS could not be reached: GET http://10.0.0.7/status: ECONNREFUSED: no connection',
      'The POS refused the connection: no program listens at its address.',
    ],
    [
      'the order exists but is not paid: POST https://a.example/pay: the POS answered 500',
      'The order exists but is not paid: The POS answered with an error of its own.',
    ],
    [
      'the ordering platform gave no usable answer. api.example.com: its name cannot be resolved (ENOTFOUND)',
      'The host name of the ordering platform is unknown.',
    ],
    [
      'the receiver could not be reached (ECONNREFUSED)',
      'The receiver refused the connection: no program listens at its address.',
    ],
    ['unexpected TypeError', 'An unexpected error occurred. Report it: the log has more.'],
    ['the POS answered 404: check ordersUrl', 'The POS has nothing at this address: check “Orders URL”.'],
    ['the ordering platform answered 200 with errors', 'The ordering platform answered with errors.'],
    ['the ordering platform answered 502 with errors', 'The ordering platform answered with an error of its own.'],
    ['the receiver answered 401: compare its secret', 'The receiver denies us access: compare its secret.'],
    ['Square answered 200 without a readable order', 'Square answered without a readable order.'],
    ['items.1.unitPrice is missing; a number is required', 'Item 2, unit price is missing; a number is required.'],
    ['refused with INVALID_VALUE about line_items', 'Refused with invalid value about line items.'],
  ])('"%s": %s', (text, sentence) => {
    expect(explainFailure(text)).toEqual({ says: sentence, details: text });
  });

  it('that is a sentence already has no details', () => {
    expect(explainFailure('the location is paused')).toEqual({ says: 'The location is paused.', details: null });
    expect(saysOf('the location is paused')).toBe('the location is paused');
    expect(saysOf(null)).toBeNull();
  });

  it('keeps what people copy: variables, ids in quotes, hosts and addresses', () => {
    for (const text of [
      'set PUBLIC_URL',
      'endpoint "aBc-1" is taken',
      'until 2026-13-45T99:99:00Z',
      'give it to "Max vanDyk OPS_1 x"',
      'https://a.example/aB_c',
      'mail a_b@c.example',
    ])
      expect(inPlainWords(text)).toBe(text);
  });
});

it('each message keeps the variables of the environment that it names', () => {
  const texts = globSync('src/{core,operators,http,identity}/**/*.ts').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/(['`])([^'`\n]* [^'`\n]*)\1/g)].map(([, , text = '']) => text),
  );
  const lost = texts.filter((text) =>
    CONFIG_NAMES.some((name) => new RegExp(`\\b${name}\\b`).test(text) && !inPlainWords(text).includes(name)),
  );
  expect(lost.filter((text) => !API_DOCS.test(text))).toEqual([]);
});

describe('each message of the service has no code:', () => {
  const VARIABLES =
    /\b(ORDER_[A-Z_]+|SETTINGS_KEY|PROVIDER_MODULES|PUBLIC_URL|ALLOW_PRIVATE_HOSTS|WEBHOOK_BODY_LIMIT)\b|\w+\[\S+\]/g;
  const found = (texts: readonly string[]): string[] =>
    machineWordsIn(texts.map((text) => text.replaceAll(VARIABLES, '')));
  /** Details of each kind that a cause may have. */
  const ABOUT = {
    error: 'TypeError',
    errorCode: 'EMPTY_PRICE',
    field: 'unitPrice',
    fields: ['lineItems.0.price'],
    reason: 'private',
    until: '2027-01-31T18:00:00.000Z',
    keyId: 'k1',
    integration: 'acme',
    setting: 'webhookKey',
    sqlstate: '22021',
    issues: [{ path: 'settings.ordersUrl', received: 'missing', expected: 'string' }],
    state: 'sent',
    wanted: 'an object',
    seconds: 20,
    providerOrderId: '8F2K',
    serviceOrderId: 'order-1',
    header: 'x-signature',
    limit: 3,
    count: 4,
  };
  const codesOf = (union: { options: readonly { shape: { code: { value: string } } }[] }): string[] =>
    union.options.map(({ shape }) => shape.code.value);

  it('causes about orders, with their steps', () => {
    const codes = [...codesOf(PlacementCause), ...codesOf(RefusalCause)];
    expect(codes.length).toBeGreaterThan(60);
    const texts = codes.flatMap((code) => {
      const cause = { ...ABOUT, code } as never;
      const steps = helpWith(cause, { locationId: 'club-1', integration: 'acme' });
      return [says(describeCause(cause)), ...steps.map(({ say }) => inPlainWords(say))];
    });
    expect(found(texts)).toEqual([]);
  });

  it('causes about webhooks, with their steps', () => {
    const webhookAuth = { header: 'x-signature', settings: ['webhookKey'], urlSetting: 'notificationUrl' } as never;
    const place = { webhookId: 'w', locationId: 'club-1', integration: 'acme', webhookAuth };
    const texts = codesOf(DropCause).flatMap((code) => {
      const cause = { ...ABOUT, code, state: 'revoked', tokenId: 't' };
      const { what, details, toDo } = explainDrop({ cause, reason: 'the webhookKey is wrong' }, place);
      return [what, ...details, ...toDo.map(({ say }) => say)].map(inPlainWords);
    });
    expect(found(texts)).toEqual([]);
  });

  it('errors of providers', () => {
    const texts = globSync('src/providers/**/*.ts').flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/new (?:TryAgain|NeedsOperator|GiveUp)\(([^;]*?)\);/gs)].flatMap(
        ([, about = '']) =>
          // A word stands for each value in a text.
          [...about.matchAll(/(['`])(.*?)(?<!\\)\1/gs)].map(([, , text = '']) => text.replaceAll(/\$\{[^}]*\}+/g, 'x')),
      ),
    );
    expect(texts.length).toBeGreaterThan(60);
    expect(found(texts.map(says))).toEqual([]);
  });
});
