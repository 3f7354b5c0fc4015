import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { blind } from '../../world/pos/pos-without-deduplication.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { startPos, type Pos } from '../../world/pos/start-pos.ts';
import { hurried } from '../../world/system/fixtures.ts';
import { post, startSystem, statusWebhook, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';
import { OPERATOR_TOKEN, scrape, type Scrape } from './scrape.ts';

let system: System;
let pos: Pos;
let url: string;

beforeAll(async () => {
  [system, pos] = await Promise.all([
    startSystem({ stepped: 'all', providers: [blind], env: { OPERATOR_TOKEN } }),
    startPos(),
  ]);
  await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
  await system.addLocation('blind', { ordersUrl: pos.ordersUrl }, 'blind');
  url = await system.webhookUrl('club-1');
});
afterEach(async () => {
  // What is left of one test is not taken up in the next.
  await system.query(`UPDATE placements SET next_attempt_at = 'infinity' WHERE finished_at IS NULL`);
  await system.query('DELETE FROM outbox');
  pos.behave = undefined;
  system.platform.answer = undefined;
  system.pubsub.faults.publishError = undefined;
});
afterAll(() => Promise.all([system?.stop(), pos?.stop()]));

const now = (): Promise<Scrape> => scrape(system.urls[0] ?? '');

/** Does something, by which a series grows by one. */
async function counts(name: string, labels: Record<string, string>, action: () => Promise<unknown>): Promise<void> {
  const before = (await now()).value(name, labels);
  expect(before, `${name} is there before anything happens`).toBeDefined();
  await action();
  // A webhook is counted when its answer is out.
  await until(async () => ((await now()).value(name, labels) ?? 0) > (before ?? 0));
  expect((await now()).value(name, labels)).toBe((before ?? 0) + 1);
}

/** Signals an order, and tries to place it. */
async function place(about: Parameters<System['placeOrder']>[0] = {}): Promise<string> {
  const { serviceOrderId } = await system.placeOrder(about);
  await system.round('placements');
  return serviceOrderId;
}
const tryAgain = async (serviceOrderId: string): Promise<void> => {
  await system.query('UPDATE placements SET next_attempt_at = now() WHERE service_order_id = $1', [serviceOrderId]);
  await system.round('placements');
};

async function seeded(about: { providerOrderId?: string } = {}): Promise<string> {
  const serviceOrderId = `order-${randomUUID()}`;
  await system.seedOrder({ serviceOrderId, locationId: 'club-1', ...about });
  return serviceOrderId;
}

/** Hides a table for as long as something takes. */
async function whileAway(table: string, action: () => Promise<unknown>): Promise<void> {
  await system.query(`ALTER TABLE ${table} RENAME TO away`);
  try {
    await action();
  } finally {
    await system.query(`ALTER TABLE away RENAME TO ${table}`);
  }
}

/** Locks a table for as long as something takes. */
async function whileLocked(table: string, action: () => Promise<unknown>): Promise<void> {
  const blocker = await system.pool.connect();
  await blocker.query('BEGIN');
  await blocker.query(`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
  try {
    await action();
  } finally {
    await blocker.query('ROLLBACK');
    blocker.release();
  }
}

describe('a background job', () => {
  it('is counted as done or failed', async () => {
    const work = 'sweep of parked events';
    const series = 'expediter_background_work_total';
    const again = await startSystem({ databaseUrl: system.databaseUrl, jobs: [work], env: { OPERATOR_TOKEN } });
    const grows = async (outcome: string): Promise<unknown> => {
      const count = async (): Promise<number> =>
        (await scrape(again.urls[0] ?? '')).value(series, { work, outcome }) ?? 0;
      const before = await count();
      return until(async () => (await count()) > before);
    };
    // It would rest for a minute if there were none.
    await system.query(
      `INSERT INTO parked_events (location_id, integration, provider_order_id, rank, webhook_day, webhook_id, native_status)
       VALUES ('nowhere', 'standard', 'unknown', 20, now(), gen_random_uuid(), 'RECEIVED')`,
    );
    try {
      await grows('done');
      await whileAway('parked_events', () => grows('failed'));
    } finally {
      await again.stop();
    }
  });
});

describe('the metrics count a webhook', () => {
  const send: Record<string, () => Promise<unknown>> = {
    applied: async () => post(url, statusWebhook({ serviceOrderId: await seeded(), status: 'READY' })),
    duplicate: async () => {
      const serviceOrderId = await seeded();
      await post(url, statusWebhook({ serviceOrderId, status: 'READY' }));
      await post(url, statusWebhook({ serviceOrderId, status: 'READY' }));
    },
    stale: async () => {
      const serviceOrderId = await seeded();
      await post(url, statusWebhook({ serviceOrderId, status: 'READY' }));
      await post(url, statusWebhook({ serviceOrderId, status: 'RECEIVED' }));
    },
    parked: async () => {
      await system.query(
        `INSERT INTO placements (service_order_id, location_id, state, deadline_at, requested_at, finished_at)
         VALUES ($1, 'club-1', 'sent', now(), now(), now())`,
        [randomUUID()],
      );
      await post(url, statusWebhook({ providerOrderId: randomUUID(), status: 'READY' }));
      await system.query(`UPDATE placements SET provider_order_id = 'x' WHERE provider_order_id IS NULL`);
    },
    unmatched: () => post(url, statusWebhook({ serviceOrderId: randomUUID(), status: 'READY' })),
    ignored: () => post(url, { eventType: 'menu.changed' }),
    dropped: () => post(url, 'no JSON'),
    unauthorized: () => post(url.replace(/token=.*/, 'token=wrong'), {}),
    not_committed: () => whileLocked('webhooks', () => hurried(() => post(url, { eventType: 'menu.changed' }))),
  };

  it.each(Object.keys(send))('as %s', async (outcome) => {
    await counts('expediter_webhooks_total', { integration: 'standard', outcome }, send[outcome] ?? (async () => {}));
  });

  it('by its cause if it was dropped', async () => {
    const labels = { integration: 'standard', cause: 'not_json' };
    await counts('expediter_webhooks_dropped_total', labels, () => post(url, 'no JSON'));
  });

  it('with its duration, and count its batch with size and duration', async () => {
    const before = await now();
    await counts(
      'expediter_webhook_duration_seconds_count',
      { integration: 'standard' },
      () => send['ignored']?.() ?? Promise.resolve(),
    );
    const after = await now();
    for (const name of ['expediter_flush_batch_size', 'expediter_flush_duration_seconds']) {
      expect(after.value(`${name}_count`)).toBeGreaterThan(before.value(`${name}_count`) ?? 0);
    }
  });
});

describe('the labels of the metrics', () => {
  it('are never chosen by the sender: any unknown name in the URL becomes "unknown"', async () => {
    for (const name of ['made-up', 'constructor', '__proto__', 'standard applied', 'x'.repeat(300)]) {
      await counts('expediter_webhooks_total', { integration: 'unknown', outcome: 'unauthorized' }, () =>
        post(`${system.urls[0]}/webhook/${encodeURIComponent(name)}/club-1?token=no`, {}),
      );
      expect((await now()).text).not.toContain(name === 'standard applied' ? name : `"${name}"`);
    }
    await counts('expediter_webhooks_total', { integration: 'unknown', outcome: 'unauthorized' }, () =>
      post(`${system.urls[0]}/webhook/nowhere`, {}),
    );
  });

  it('have no location, no order and no token', async () => {
    const serviceOrderId = await place();
    const { text } = await now();
    for (const word of ['club-1', serviceOrderId, new URL(url).searchParams.get('token') ?? '']) {
      expect(text).not.toContain(word);
    }
  });
});

describe('the metrics of an order', () => {
  it('count its signal, its fetch, its ticket and its live messages', async () => {
    const before = await now();
    await system.signal(await place());
    await system.finish('relay');
    const grown = [
      ['expediter_signals_total', { outcome: 'recorded' }, 1],
      ['expediter_signals_total', { outcome: 'known' }, 1],
      ['expediter_refetches_total', { outcome: 'fetched' }, 1],
      ['expediter_placement_attempts_total', { integration: 'standard', call: 'createOrder', outcome: 'placed' }, 1],
      ['expediter_placement_call_duration_seconds_count', { integration: 'standard', call: 'createOrder' }, 1],
      ['expediter_placements_total', { integration: 'standard', outcome: 'sent' }, 1],
      ['expediter_placement_duration_seconds_count', { integration: 'standard' }, 1],
      ['expediter_live_messages_total', { outcome: 'published', way: 'topic' }, 2],
      ['expediter_live_lag_seconds_count', { way: 'topic' }, 2],
    ] as const;
    const after = await now();
    for (const [name, labels, by] of grown) {
      expect(after.value(name, labels), name).toBe((before.value(name, labels) ?? 0) + by);
    }
    const took = (name: string, labels = {}): number =>
      (after.value(name, labels) ?? 0) - (before.value(name, labels) ?? 0);
    expect(took('expediter_live_lag_seconds_sum', { way: 'topic' })).toBeGreaterThan(0);
  });

  it('count a signal without an order id as poison, and a signal without a valid token as unauthorized', async () => {
    const token = await system.pubsub.signPushToken({
      aud: 'https://expediter.test/pubsub/push',
      email: 'push@test-project.iam.gserviceaccount.com',
      email_verified: true,
    });
    const push = `${system.urls[0]}/pubsub/push`;
    await counts('expediter_signals_total', { outcome: 'poison' }, () =>
      post(push, {}, { authorization: `Bearer ${token}` }),
    );
    await counts('expediter_signals_total', { outcome: 'unauthorized' }, () => post(push, {}));
  });

  it('count a signal that cannot be recorded', async () => {
    await counts('expediter_signals_total', { outcome: 'not_recorded' }, () =>
      whileAway('placements', async () => expect(await system.signal(randomUUID())).toBe(503)),
    );
  });

  it.each([
    ['TryAgain', { status: 503 }],
    ['NeedsOperator', { status: 401 }],
    ['GiveUp', { status: 422 }],
  ])('count a call that ends with %s', async (outcome, answer) => {
    pos.behave = () => answer;
    const labels = { integration: 'standard', call: 'createOrder', outcome };
    await counts('expediter_placement_attempts_total', labels, place);
  });

  it('count a held order once, however often the order is tried', async () => {
    const labels = { integration: 'unknown', outcome: 'held' };
    let serviceOrderId = '';
    await counts('expediter_placements_total', labels, async () => {
      serviceOrderId = await place({ locationId: 'not-configured' });
    });
    const before = (await now()).value('expediter_placements_total', labels);
    const cause = { outcome: 'held', cause: 'no_location' };
    expect((await now()).value('expediter_placement_causes_total', cause)).toBe(1);
    await tryAgain(serviceOrderId);
    const due = 'SELECT FROM placements WHERE service_order_id = $1 AND next_attempt_at <= now()';
    expect(await system.query(due, [serviceOrderId]), 'not yet tried').toEqual([]);
    expect((await now()).value('expediter_placements_total', labels)).toBe(before);
  });

  it('count an order that fails, and an order that is in doubt', async () => {
    pos.behave = () => ({ status: 422 });
    await counts('expediter_placements_total', { integration: 'standard', outcome: 'failed' }, () =>
      counts('expediter_placement_causes_total', { outcome: 'failed', cause: 'pos_rejected_order' }, place),
    );
    pos.behave = () => 'drop-answer';
    await counts('expediter_placements_total', { integration: 'blind', outcome: 'in_doubt' }, () =>
      counts('expediter_placement_causes_total', { outcome: 'in_doubt', cause: 'pos_silent' }, () =>
        place({ locationId: 'blind' }),
      ),
    );
  });

  it('count an order that stays in doubt only once, however often the order is tried', async () => {
    pos.behave = ({ attempt }) => (attempt <= 2 ? 'drop-answer' : undefined);
    const labels = { integration: 'standard', outcome: 'in_doubt' };
    await counts('expediter_placements_total', labels, async () => {
      const serviceOrderId = await place();
      await tryAgain(serviceOrderId);
      await tryAgain(serviceOrderId);
      expect(await system.placement(serviceOrderId)).toMatchObject({ state: 'sent', attempts: 3 });
    });
  });

  it('count an order that the platform does not have yet as missing', async () => {
    await counts('expediter_refetches_total', { outcome: 'missing' }, async () => {
      await system.signal(sampleOrder().serviceOrderId);
      await system.round('placements');
    });
  });

  it('count a live message that Pub/Sub refuses as failed', async () => {
    system.pubsub.faults.publishError = () => 14;
    await post(url, statusWebhook({ serviceOrderId: await seeded(), status: 'READY' }));
    await counts('expediter_live_messages_total', { outcome: 'failed' }, () => system.round('relay'));
  });

  it.each([
    ['expediter_polls_total', { integration: 'standard', outcome: 'unknown' }],
    ['expediter_cancellations_total', { integration: 'standard', outcome: 'refused' }],
    ['expediter_refreshes_total', { outcome: 'given_up' }],
  ])('have %s at 0 from the beginning', async (name, labels) => {
    expect((await now()).value(name, labels)).toBe(0);
  });

  it('count a conflict between two POS ids', async () => {
    const [mine, pos1] = [await seeded(), `pos-${randomUUID()}`];
    await seeded({ providerOrderId: pos1 });
    await counts('expediter_conflicts_total', { integration: 'standard' }, () =>
      post(url, statusWebhook({ serviceOrderId: mine, providerOrderId: pos1, status: 'READY' })),
    );
  });
});

describe('the metrics of a process', () => {
  it("have its version, readiness, connections, circuits and Node's own values", async () => {
    const read = await now();
    expect(read.value('expediter_info', { version: '1.0.0' })).toBe(1);
    expect(read.value('expediter_ready')).toBe(1);
    expect(read.value('expediter_database_up')).toBe(1);
    expect(read.value('expediter_breaker_open', { integration: 'standard' })).toBe(0);
    for (const pool of ['main', 'flush']) {
      expect(read.value('expediter_pool_connections', { pool, state: 'total' })).toBeGreaterThan(0);
    }
    for (const name of [
      'nodejs_eventloop_lag_p99_seconds',
      'process_resident_memory_bytes',
      'nodejs_gc_duration_seconds_count',
    ]) {
      expect(read.value(name), name).toBeDefined();
    }
  });

  it('a check of Postgres uses all connections that carry webhooks, so that none is closed as idle', async () => {
    const carriers = (): Promise<unknown[]> =>
      system.query(
        `SELECT pid FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'expediter' AND query LIKE '%WITH event AS (%'`,
      );
    const before = await until(async () => {
      await Promise.all(Array.from({ length: 50 }, () => post(url, { eventType: 'ping' })));
      const found = await carriers();
      return found.length > 1 && found;
    });
    await system.round('check of Postgres');
    expect(await carriers()).toEqual([]);
    expect(await system.query('SELECT pid FROM pg_stat_activity')).toEqual(expect.arrayContaining(before));
  });
});
