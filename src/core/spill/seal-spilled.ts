import { z } from 'zod';
import type { ArrivedWebhook } from '../domain/webhook.ts';
import { readSealHeader, seal, unseal, type SettingsKeys } from '../locations/settings-key.ts';

/** A webhook in the spill, with who sent it and what its log lines name it by. */
export type SpilledWebhook = ArrivedWebhook & { tokenId: string; requestId: string; trace: string | undefined };

/** Other places hold rows. What was sealed for them opens no message, nor the reverse. */
const PLACE = 'spill';

const Sealed = z.object({
  id: z.uuidv7(),
  locationId: z.string(),
  integration: z.string(),
  tokenId: z.uuid(),
  requestId: z.string(),
  trace: z.string().optional(),
  receivedAt: z.iso.datetime().transform((text) => new Date(text)),
  target: z.string(),
  token: z.string(),
  headers: z.record(z.string(), z.string()),
  body: z.base64().transform((text) => Buffer.from(text, 'base64')),
  truncated: z.boolean(),
});

/** Encrypts a webhook for the spill topic: a JWE in ASCII, nearly twice as long as the body. */
export async function sealSpilled(keys: SettingsKeys, spilled: SpilledWebhook): Promise<Buffer> {
  // guard: spilled-sealed
  return Buffer.from(await seal(keys, { ...spilled, body: spilled.body.toString('base64') }, PLACE), 'latin1');
}

/** @throws Error if no key fits, if it was not sealed for the spill, or if it is of a version that this one cannot read */
export async function openSpilled(keys: SettingsKeys, data: Uint8Array): Promise<SpilledWebhook> {
  const text = Buffer.from(data).toString('latin1');
  // Rows of an earlier version have no place; no version wrote such a message.
  if (!readSealHeader(text).isBound) throw new Error('it was sealed for no place');
  // guard: spilled-opened
  const { trace, ...webhook } = Sealed.parse(await unseal(keys, text, PLACE));
  return { ...webhook, trace };
}
