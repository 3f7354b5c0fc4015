import { z } from 'zod';
import type { ArrivedWebhook } from '../domain/webhook.ts';
import { seal, type SettingsKeys, unseal } from '../locations/settings-key.ts';
import { withTimeout } from '../domain/timing.ts';
import { Instant } from '../domain/order.ts';

export type SpilledWebhook = ArrivedWebhook & { tokenId: string; requestId: string; trace: string | undefined };

/** Separates spill messages from sealed rows: neither can be decrypted as the other. */
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

/** @throws Error if no key fits, if it was not sealed for the spill, or if this version cannot read it */
export async function decryptSpilled(keys: SettingsKeys, data: Uint8Array): Promise<SpilledWebhook> {
  const text = Buffer.from(data).toString('latin1');
  // guard: spilled-opened
  const { trace, ...webhook } = Sealed.parse(await unseal(keys, text, PLACE));
  return { ...webhook, trace };
}

/**
 * Puts a webhook into the spill, sealed.
 * @param about.take a function that counts the sealed bytes, and throws if the capacity is used up
 * @param about.deadline the deadline in milliseconds since the epoch
 */
export type SpillWebhook = (
  spilled: SpilledWebhook,
  about: { take: (bytes: number) => void; deadline: number },
) => Promise<void>;

const late = (): Error => new Error('Pub/Sub did not acknowledge it in time');

/** @param deps.publish a function that publishes a message, and resolves when it is durable */
export function webhookSpiller(deps: { keys: SettingsKeys; publish: (data: Buffer) => Promise<void> }): SpillWebhook {
  return async (spilled, { take, deadline }) => {
    const data = await sealSpilled(deps.keys, spilled);
    take(data.length);
    // guard: answered-when-out
    await withTimeout(deadline - Date.now(), () => deps.publish(data), late);
  };
}

export type SpillState = {
  /** Webhooks that it spilled since Postgres went away, plus webhooks that it received from the spill to drain. */
  waiting: number;
  /** When the oldest of them arrived. */
  oldestAt: Date | null;
};

export const NONE_WAITING: SpillState = { waiting: 0, oldestAt: null };

export const SpillAnswer = z
  .object({
    database: z.enum(['up', 'read_only', 'down', 'unknown']).meta({
      description: '`read_only`: it answers but takes no writes, like a standby. `unknown`: not checked yet.',
    }),
    waiting: z.int().meta({
      description: 'Webhooks that were answered 200 and, as far as this process knows, are not in Postgres yet.',
    }),
    oldestAt: Instant.nullable().meta({ description: 'When the oldest of them arrived.' }),
  })
  .meta({ id: 'SpillAnswer', examples: [{ database: 'down', waiting: 3, oldestAt: '2027-01-31T18:00:00.123Z' }] });
