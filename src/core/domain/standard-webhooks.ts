import { createHmac } from 'node:crypto';

// Standard Webhooks: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md

export const ID = 'webhook-id';
export const TIMESTAMP = 'webhook-timestamp';
export const SIGNATURE = 'webhook-signature';
const PREFIX = 'whsec_';

/** True for a key of 24 to 64 bytes in base64, with or without the prefix `whsec_`. */
export function isSecret(secret: string): boolean {
  const key = keyOf(secret);
  return key.length >= 24 && key.length <= 64 && key.toString('base64') === withoutPrefix(secret);
}

/**
 * Parses the secrets that sign our messages: one, or two while it is changed, with a space between.
 * @throws Error that does not quote them
 */
export function parseSecrets(text: string): readonly string[] {
  const secrets = text.split(/\s+/);
  const wrong = 'is not whsec_ and the base64 of 24 to 64 bytes';
  if (secrets.length > 2) throw new Error('has more than two secrets: write the new and the old one');
  if (!secrets.every(isSecret)) throw new Error(secrets.length === 1 ? wrong : `has a secret that ${wrong}`);
  return secrets;
}

/** @returns the header `webhook-signature`, with one signature per secret, because the receiver may know only one of them */
export function sign(secrets: readonly string[], id: string, timestamp: string, body: string | Buffer): string {
  return secrets.map((secret) => signatureOf(secret, id, timestamp, body)).join(' ');
}

export function signatureOf(secret: string, id: string, timestamp: string, body: string | Buffer): string {
  return `v1,${createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.`).update(body).digest('base64')}`;
}

export function keyOf(secret: string): Buffer {
  return Buffer.from(withoutPrefix(secret), 'base64');
}

function withoutPrefix(secret: string): string {
  return secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
}
