import type pg from 'pg';
import { z } from 'zod';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensureWebhookPartitions } from '../../../src/core/postgres/ensure-webhook-partitions.ts';
import { eraseMembers } from '../../../src/core/retention/erase-members.ts';
import { NotAuthentic } from '../../../src/core/domain/errors.ts';
import { settingsDecrypter } from '../../../src/core/locations/locations.ts';
import type { StatusEvent } from '../../../src/core/domain/order.ts';
import type { Provider } from '../../../src/core/domain/provider.ts';
import { listWebhooks } from '../../../src/core/replay/list-webhooks.ts';
import { replayWebhook, type Replayed } from '../../../src/core/replay/replay-webhook.ts';
import { parseSettingsKeys } from '../../../src/core/locations/settings-key.ts';
import { showWebhook } from '../../../src/core/replay/show-webhook.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';

const words = 'Ada waits outside';
let secretIsRight = false;

const picky: Provider = {
  integration: 'picky',
  settings: z.object({}),
  deduplicates: true,
  createOrder: () => Promise.resolve({}),
  webhookHeaders: ['x-table'],
  translateWebhook({ body, verified }) {
    if (!secretIsRight && !verified) throw new NotAuthentic('a wrong secret');
    return (JSON.parse(body.toString()) as { events: StatusEvent[] }).events;
  },
};

let stage: Stage;
let pool: pg.Pool;
let path: string;
let deps: Parameters<typeof replayWebhook>[0] & Parameters<typeof showWebhook>[0];

beforeAll(async () => {
  stage = await startStage({ providers: [picky] });
  await stage.addLocation('club-1', {}, 'picky');
  path = await stage.webhookPath('club-1');
  ({ pool } = stage);
  const keys = parseSettingsKeys(stage.env['SETTINGS_KEY'] ?? '');
  const registry = new Map([['picky', picky]]);
  const decryptSettings = settingsDecrypter({ registry, keys, publicUrl: undefined });
  deps = { pool, registry, decryptSettings, keys, publicUrl: '', dryRun: false };
  await ensureWebhookPartitions(pool);
});
afterAll(() => stage?.stop());

async function replay(id: string | null, dryRun = false): Promise<Replayed> {
  const replayed = await replayWebhook({ ...deps, dryRun }, id ?? '');
  if (replayed === undefined || 'refused' in replayed) throw new Error(replayed?.refused ?? 'there is none');
  return replayed;
}

/** A webhook about an order, which was dropped: its secret was wrong. */
async function drop(serviceOrderId: string): Promise<string> {
  await stage.seedOrder({ serviceOrderId, locationId: 'club-1' });
  secretIsRight = false;
  const events = [{ serviceOrderId, status: 'cancelled', nativeStatus: 'x', reason: words }];
  const { body } = await stage.post(path, { events }, { 'x-table': words });
  expect(body['outcome']).toBe('dropped');
  return String(body['webhookId']);
}

const kept = async (id: string | null): Promise<Record<string, unknown> | undefined> =>
  (await stage.query('SELECT * FROM webhooks WHERE id = $1', [id]))[0];

const BLANK = { headers: {}, body: Buffer.alloc(0), sealed: null };

describe('a dropped webhook that is dropped again at its replay', () => {
  it('is stored once: its replay has no body or headers of its own, but can be shown and replayed', async () => {
    const webhook = await drop('vain');
    const first = await replay(webhook);
    expect(first).toMatchObject({ outcome: 'dropped', replayOf: webhook });
    const second = await replay(first.webhookId);
    expect(second).toMatchObject({ outcome: 'dropped', replayOf: webhook });
    for (const { webhookId } of [first, second]) {
      expect(await kept(webhookId)).toMatchObject({ ...BLANK, reason: expect.stringContaining('not authentic') });
    }
    expect(await showWebhook(deps, second.webhookId ?? '')).toMatchObject({
      outcome: 'dropped',
      replayOf: webhook,
      erased: false,
      headers: expect.objectContaining({ 'x-table': words }),
      today: { dropped: expect.stringContaining('not authentic') },
    });
    secretIsRight = true;
    const third = await replay(second.webhookId);
    expect(third).toMatchObject({ outcome: 'applied', replayOf: webhook });
    expect(await kept(third.webhookId)).toMatchObject({ body: (await kept(webhook))?.['body'], sealed: null });
  });

  it('is stored once even if Postgres refuses its replay', async () => {
    const webhook = await drop('refused');
    secretIsRight = true;
    await stage.query(`ALTER TABLE status_events ADD CONSTRAINT strict CHECK (service_order_id <> 'refused')`);
    const [dry, replayed] = [await replay(webhook, true), await replay(webhook)];
    await stage.query('ALTER TABLE status_events DROP CONSTRAINT strict');
    for (const each of [dry, replayed]) {
      expect(each).toMatchObject({
        outcome: 'dropped',
        reason: 'Postgres refused a value in it (23514)',
        cause: { code: 'refused_by_postgres', sqlstate: '23514' },
      });
    }
    expect(await kept(replayed.webhookId)).toMatchObject(BLANK);
    expect(await replay(replayed.webhookId)).toMatchObject({ outcome: 'applied' });
  });

  it('is deleted with its day, and then its replay is refused with `not_stored`', async () => {
    const webhook = await drop('gone');
    const { webhookId } = await replay(webhook);
    await stage.query('DELETE FROM webhooks WHERE id = $1', [webhook]);
    const refused = 'the webhook that it replays is no longer stored';
    expect(await replayWebhook(deps, webhookId ?? '')).toEqual({ refused, cause: { code: 'not_stored' } });
    expect(await showWebhook(deps, webhookId ?? '')).toMatchObject({ today: { refused }, erased: false });
  });
});

describe('a dropped webhook that turns out to be about an erased order', () => {
  it('loses its contents at a replay, together with its earlier replays, but not at a dry run', async () => {
    const webhook = await drop('erased');
    // A replay from before, of a time when the order was another's: it has contents of its own.
    const [other] = await stage.query(
      `INSERT INTO webhooks (day, location_id, id, integration, received_at, headers, body, events, outcome,
                               replay_of, first_received_at)
       SELECT day, location_id, gen_random_uuid(), integration, received_at, headers, body, 1, 'unmatched', id, received_at
       FROM webhooks WHERE id = $1 RETURNING id`,
      [webhook],
    );
    await stage.query(`UPDATE orders SET ended_at = now() - interval '40 days' WHERE service_order_id = 'erased'`);
    expect(await eraseMembers(pool, 30)).toBe(1);
    const before = await kept(webhook);
    expect(before).toMatchObject({ headers: { 'x-table': words } });

    secretIsRight = true;
    expect(await replay(webhook, true)).toMatchObject({ outcome: 'applied' });
    expect(await kept(webhook)).toEqual(before);
    const { webhookId } = await replay(webhook);
    for (const id of [webhook, String(other?.['id']), webhookId]) {
      expect(await kept(id)).toMatchObject({ ...BLANK, reason: null, cause: null });
    }
    expect(await replayWebhook(deps, webhook)).toEqual({
      refused: expect.stringContaining('erased'),
      cause: { code: 'erased' },
    });
  });

  it('loses its contents even if its replay first waited for a POS id', async () => {
    await stage.seedOrder({ serviceOrderId: 'slow', locationId: 'club-1' });
    secretIsRight = false;
    const events = [{ providerOrderId: 'slow-1', status: 'cancelled', nativeStatus: 'x', reason: words }];
    const { body } = await stage.post(path, { events }, { 'x-table': words });
    secretIsRight = true;
    await stage.query(
      `UPDATE orders SET ended_at = now() - interval '40 days', erased_at = now() WHERE service_order_id = 'slow'`,
    );
    const { outcome, webhookId } = await replay(String(body['webhookId']));
    expect(outcome).toBe('unmatched');
    const told = await stage.post(path, {
      events: [{ serviceOrderId: 'slow', providerOrderId: 'slow-1', status: 'ready', nativeStatus: 'x' }],
    });
    expect(told.status).toBe(200);
    await expect.poll(async () => (await kept(webhookId))?.['body'], { timeout: 60_000 }).toEqual(Buffer.alloc(0));
    expect(await kept(String(body['webhookId']))).toMatchObject(BLANK);
  });
});

describe('a webhook with our token in its body', () => {
  const withToken = (about: object): object => ({
    events: [{ status: 'cancelled', nativeStatus: 'x', reason: words, ...about }],
    callback: `https://expediter.test${path}`,
  });
  const stored = async (id: string | null): Promise<string> => JSON.stringify(await kept(id));
  const token = (): string => new URL(path, 'https://expediter.test').searchParams.get('token') ?? '';

  it('is shown and replayed with the token, which is not readable in the table', async () => {
    await stage.seedOrder({ serviceOrderId: 'called-back', locationId: 'club-1' });
    secretIsRight = true;
    const sent = JSON.stringify(withToken({ serviceOrderId: 'called-back' }));
    const { body } = await stage.post(path, sent);
    expect(body['outcome']).toBe('applied');
    // What was verified when it came is not verified again.
    secretIsRight = false;
    const replayed = await replay(String(body['webhookId']));
    expect(replayed).toMatchObject({ outcome: 'duplicate' });
    const ids = [String(body['webhookId']), replayed.webhookId ?? ''];
    for (const id of ids) {
      expect(await showWebhook(deps, id)).toMatchObject({ body: { text: sent }, bytes: sent.length, erased: false });
      expect(await stored(id)).not.toContain(token().slice(4, 20));
      expect(await kept(id)).toMatchObject({ body: Buffer.alloc(0), sealed: expect.stringMatching(/^eyJ/) });
    }
    const about = { locationId: 'club-1', serviceOrderId: 'called-back' };
    const page = { oldestFirst: true, limit: 10 };
    const listed = await listWebhooks(pool, about, page);
    expect(listed.webhooks.map(({ webhookId, bytes }) => ({ webhookId, bytes }))).toEqual(
      ids.map((webhookId) => ({ webhookId, bytes: sent.length })),
    );
    const decryptSettings = await listWebhooks(pool, { ...about, replayable: 'all' }, page);
    expect(decryptSettings.webhooks.map(({ webhookId }) => webhookId)).toEqual([ids[0]]);

    await stage.query(`UPDATE orders SET ended_at = now() - interval '40 days' WHERE service_order_id = 'called-back'`);
    expect(await eraseMembers(pool, 30)).toBe(1);
    for (const id of ids) expect(await kept(id)).toMatchObject(BLANK);
  });

  it('is stored without its body if its order is erased already', async () => {
    secretIsRight = true;
    const { body } = await stage.post(path, withToken({ serviceOrderId: 'called-back', status: 'failed' }));
    expect(body['outcome']).toBe('stale');
    expect(await kept(String(body['webhookId']))).toMatchObject(BLANK);
  });

  it('is verified again with all its bytes if it was dropped', async () => {
    await stage.seedOrder({ serviceOrderId: 'late-callback', locationId: 'club-1' });
    secretIsRight = false;
    const { body } = await stage.post(path, withToken({ serviceOrderId: 'late-callback' }), {
      authorization: 'Basic eDp5',
    });
    expect(body['outcome']).toBe('dropped');
    const first = await replay(String(body['webhookId']));
    expect(first).toMatchObject({ outcome: 'dropped' });
    expect(await kept(first.webhookId)).toMatchObject(BLANK);
    secretIsRight = true;
    const second = await replay(first.webhookId);
    expect(second).toMatchObject({ outcome: 'applied' });
    for (const id of [String(body['webhookId']), second.webhookId]) {
      expect(await stored(id)).not.toContain(token().slice(4, 20));
    }
  });

  it('cannot be decrypted in the row of another webhook: the error is `sealed_for_another`', async () => {
    secretIsRight = false;
    const [one, other] = [await drop('one'), await drop('other')];
    await stage.query('UPDATE webhooks w SET sealed = o.sealed FROM webhooks o WHERE w.id = $1 AND o.id = $2', [
      one,
      other,
    ]);
    expect(await replayWebhook(deps, one)).toEqual({
      refused: expect.stringMatching(
        new RegExp(`encrypted for webhooks/club-1/${other}, but is in webhooks/club-1/${one}$`),
      ),
      cause: { code: 'sealed_for_another' },
    });
  });
});
