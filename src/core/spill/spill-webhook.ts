import { z } from 'zod';
import type { ArrivedWebhook } from '../domain/webhook.ts';
import { readSealHeader, seal, type SettingsKeys, unseal } from '../locations/settings-key.ts';
import { withTimeout } from '../domain/timing.ts';
import { Instant } from '../domain/order.ts';

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

/**
 * Puts a webhook into the spill, sealed.
 * @param about.take counts the sealed bytes, and throws if there is no room for them
 * @param about.deadline in milliseconds since the epoch
 */
export type SpillWebhook = (
  spilled: SpilledWebhook,
  about: { take: (bytes: number) => void; deadline: number },
) => Promise<void>;

const late = (): Error => new Error('Pub/Sub did not acknowledge it in time');

/** @param deps.publish resolves once the message is durable */
export function webhookSpiller(deps: { keys: SettingsKeys; publish: (data: Buffer) => Promise<void> }): SpillWebhook {
  return async (spilled, { take, deadline }) => {
    const data = await sealSpilled(deps.keys, spilled);
    take(data.length);
    // guard: answered-when-out
    await withTimeout(deadline - Date.now(), () => deps.publish(data), late);
  };
}

/** What one process knows of the spill. */
export type SpillState = {
  /** Webhooks that it spilled since Postgres is away, and those that it has received and not drained yet. */
  waiting: number;
  /** When the oldest of them came. */
  oldestAt: Date | null;
};

export const NONE_WAITING: SpillState = { waiting: 0, oldestAt: null };

/** The same as operators read it, with what is known of Postgres. */
export const SpillAnswer = z
  .object({
    database: z
      .enum(['up', 'read_only', 'down', 'unknown'])
      .meta({ description: '`read_only`: it answers, and takes no writes, as a standby. `unknown`: not looked yet.' }),
    waiting: z.int().meta({ description: 'Webhooks answered 200 that this process knows not to be in Postgres yet.' }),
    oldestAt: Instant.nullable().meta({ description: 'When the oldest of them came.' }),
  })
  .meta({ id: 'SpillAnswer', examples: [{ database: 'down', waiting: 3, oldestAt: '2027-01-31T18:00:00.123Z' }] });
