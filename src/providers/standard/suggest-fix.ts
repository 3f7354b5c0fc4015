import { jsonIn } from '../../core/domain/json-text.ts';
import { createHmac, randomBytes } from 'node:crypto';
import { STATUSES } from '../../core/domain/lifecycle.ts';
import type { Webhook } from '../../core/domain/provider.ts';
import { signingSecrets, type Settings } from './payloads.ts';
import { KITCHEN_STATES } from './read-events.ts';
import { ID, keyOf, TIMESTAMP, verify } from '../../core/domain/standard-webhooks.ts';
import { webhookAuth } from './sign.ts';

const EVENT_TYPE = 'order.status';
const OF_KITCHEN = 'kitchen.status';

export function suggestFix(webhook: Webhook, settings: Settings): string | undefined {
  const { headers, body } = webhook;
  const secrets = signingSecrets(settings);
  try {
    if (secrets.length > 0) verify(secrets, webhook);
  } catch {
    // A present time has 13 digits in milliseconds, and ten in seconds.
    if (/^\d{13}$/.test(headers[TIMESTAMP] ?? '')) return `send seconds, not milliseconds, in ${TIMESTAMP}`;
    return fixOfSignature(headers, body, secrets.map(keyOf));
  }
  return fixOfBody(body);
}

function fixOfSignature(headers: Webhook['headers'], body: Buffer, keys: readonly Buffer[]): string | undefined {
  const { [ID]: id = '', [TIMESTAMP]: seconds = '', [webhookAuth.header]: header = '' } = headers;
  for (const signature of header.split(' ')) {
    const given = signature.replace(/^v1,/, '');
    for (const key of keys) {
      const right = hmac(key, [`${id}.${seconds}.`, body]);
      if (isHexOf(right, given)) return 'the signature is right, but in hex: write its 32 bytes as base64, after "v1,"';
      if (given === right.toString('base64')) return given === signature ? 'write "v1," before the base64' : undefined;
      if (isBase64Of(right, given)) return 'use standard base64, with + / and =';
      const ofBody = hmac(key, [body]);
      if (isHexOf(ofBody, given) || isBase64Of(ofBody, given)) {
        return `you signed only the body: sign "{${ID}}.{${TIMESTAMP}}." and the body, and write "v1," and the base64`;
      }
    }
  }
  return undefined;
}

function fixOfBody(body: Buffer): string | undefined {
  const json = jsonIn(body.toString()) as
    | { eventType?: unknown; order?: { status?: unknown } | null; kitchen?: { state?: unknown } | null }
    | null
    | undefined;
  if (json === undefined) return 'send JSON';
  if (json?.eventType === OF_KITCHEN) return fixOfWord(json.kitchen?.state, 'kitchen.state', KITCHEN_STATES);
  if (json?.eventType !== EVENT_TYPE) return `write "eventType": "${EVENT_TYPE}" next to "order"`;
  if (typeof json.order !== 'object' || json.order === null) {
    return 'put thirdPartyReference, id and status inside "order"';
  }
  return fixOfWord(json.order.status, 'status', STATUSES);
}

function fixOfWord(given: unknown, field: string, known: readonly string[]): string | undefined {
  const words = known.map((each) => each.toUpperCase());
  if (typeof given === 'string' && words.includes(given.toUpperCase())) return undefined;
  return `write one of these as "${field}": ${words.join(', ')}`;
}

function hmac(key: Buffer, parts: readonly (string | Buffer)[]): Buffer {
  const hmac = createHmac('sha256', key);
  for (const part of parts) hmac.update(part);
  return hmac.digest();
}

function isHexOf(bytes: Buffer, text: string): boolean {
  return text.toLowerCase() === bytes.toString('hex');
}

/** Accepts every base64 alphabet, with or without padding. */
function isBase64Of(bytes: Buffer, text: string): boolean {
  return Buffer.from(text, 'base64').equals(bytes);
}

/** Makes settings that sign orders with a random, wrong secret. @returns undefined if the location has no secret */
export function forge({ ordersUrl, secret }: Settings): Settings | undefined {
  if (secret === undefined) return undefined;
  return { ordersUrl, secret: `whsec_${randomBytes(32).toString('base64')}` };
}
