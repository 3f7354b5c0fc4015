import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { statusEvent } from '../../../src/core/domain/cloud-event.ts';
import type { Way } from '../../../src/core/domain/live-message.ts';
import { guardedFetch } from '../../../src/core/egress/guarded-fetch.ts';
import { eventWebhook } from '../../../src/core/egress/post-signed.ts';
import { orderFeed } from '../../../src/core/live/order-feed.ts';
import { publishLive, type Publish } from '../../../src/core/live/publish-live.ts';
import { sampleAttention } from '../../../src/core/orders/sample-attention.ts';
import { sampleBacklog } from '../../../src/core/orders/sample-backlog.ts';
import { readLiveWays, resendLive, resumeEndpoint, statusEndpoint } from '../../../src/core/live/status-endpoint.ts';
import { oneAfterTheOther } from '../../../src/core/postgres/loops.ts';
import { seedOrders } from '../../support/seed-rows.ts';
import { testPool } from '../../support/test-pool.ts';
import { untilLocked } from '../../support/until-locked.ts';
import { allowedHosts } from '../../../world/network/allowed-loopback.ts';
import { until } from '../../../world/processes/until.ts';
import { startReceiver, type Receiver } from '../../../world/receiver/start-receiver.ts';

const OTHER_SECRET = `whsec_${Buffer.alloc(32, 'other').toString('base64')}`;

const pool = testPool({ max: 8 });
let receiver: Receiver;
/** What the topic took, such as `soup/3`. */
let onTopic: string[];
/** Of the process whose relays are made. */
let inTurn = oneAfterTheOther();
/** Of the processes, by what their statements depend on. */
const pools = new Map<string, pg.Pool>();

beforeEach(async () => {
  await pool.query('TRUNCATE orders, placements, outbox, live_messages, status_endpoints CASCADE');
  receiver = await startReceiver();
  onTopic = [];
});
afterEach(async () => {
  await Promise.all([receiver.stop(), ...[...pools.values()].map((each) => each.end())]);
  pools.clear();
});

type Relay = ReturnType<typeof publishLive>;

/** The relay of a process that sends to the receiver. */
function webhookRelay(about: { isOnly?: boolean; secrets?: string[]; to?: Receiver } = {}): Relay {
  const { isOnly = true, to = receiver, secrets = [to.secret] } = about;
  const { url } = to;
  const send = eventWebhook(
    { url, secrets, send: guardedFetch(allowedHosts), now: () => new Date() },
    { source: 'https://us.test/live' },
  );
  return relayOf('webhook', isOnly, {
    publish: (message) => send(statusEvent(message, undefined)),
    url,
  });
}

/** The relay of a process whose topic takes everything. */
function topicRelay({ isOnly = false }: { isOnly?: boolean } = {}): Relay {
  return relayOf('topic', isOnly, {
    publish: ({ serviceOrderId, sequence }) => {
      onTopic.push(`${serviceOrderId}/${sequence}`);
      return Promise.resolve(undefined);
    },
  });
}

/** Both relays of a process. */
function both(): [Relay, Relay] {
  inTurn = oneAfterTheOther();
  return [topicRelay(), webhookRelay({ isOnly: false })];
}

function relayOf(way: Way, isOnly: boolean, { publish, url }: { publish: Publish; url?: string }): Relay {
  const about = `${way} ${isOnly} ${url}`;
  const { connectionString } = pool.options;
  const ofProcess = pools.get(about) ?? new pg.Pool({ connectionString, max: 2 });
  pools.set(about, ofProcess);
  const log = { info: () => {}, error: () => {} };
  const endpoint = url === undefined ? undefined : statusEndpoint({ pool: ofProcess, url, log });
  return publishLive({
    pool: ofProcess,
    way,
    isOnly,
    publish,
    inTurn,
    ...(endpoint && { endpoint }),
    log,
    observe: () => {},
  });
}

/** Puts messages into the outbox, as commits do. The first one is the oldest. */
async function commit(...messages: readonly string[]): Promise<void> {
  const ids = [...new Set(messages.map((message) => orderOf(message)))];
  const { rows } = await pool.query<{ id: string }>('SELECT service_order_id AS id FROM orders');
  const fresh = ids.filter((id) => !rows.some((row) => row.id === id));
  if (fresh.length > 0) await seedOrders(pool, fresh);
  await pool.query(
    `INSERT INTO outbox (service_order_id, sequence, rank, applied_at)
     SELECT split_part(message, '/', 1), split_part(message, '/', 2)::int, 20, clock_timestamp() + nth * interval '1 microsecond'
     FROM unnest($1::text[]) WITH ORDINALITY AS m (message, nth)`,
    [messages],
  );
}

const orderOf = (message: string): string => message.split('/', 1)[0] ?? '';
const nameOf = ({ subject, sequence }: { subject: string; sequence: number }): string => `${subject}/${sequence}`;
const received = (): string[] => receiver.received.map(nameOf);
const taken = (to = receiver): string[] => to.taken.map(nameOf);
/** Ends the leases and the waits of messages that failed. */
const pass = () => pool.query('UPDATE outbox SET lease_until = NULL, webhook_lease_until = NULL');

/** Lets the relays take turns until nothing is due. */
async function finish(...relays: readonly Relay[]): Promise<void> {
  for (;;) {
    let done = 0;
    for (const relay of relays) done += await relay.round();
    if (done === 0) break;
  }
  // What both ways have taken is deleted by the next claim.
  for (const relay of relays) await relay.round();
}

/** Has the topic's claim of all messages commit while `work` waits for it. */
async function whileTopicClaims(work: () => Promise<unknown>): Promise<void> {
  const topic = await pool.connect();
  let working: Promise<unknown> | undefined;
  try {
    await topic.query('BEGIN');
    await topic.query(`UPDATE outbox SET lease_until = now() + interval '10 s', attempts = attempts + 1`);
    working = work();
    await Promise.race([untilLocked(pool), working]);
    await topic.query('COMMIT');
  } finally {
    topic.release(true);
  }
  await working;
}

async function waiting(): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `SELECT service_order_id || '/' || sequence AS name FROM outbox ORDER BY applied_at, sequence`,
  );
  return rows.map(({ name }) => name);
}
const stateOf = async (to = receiver) => (await readLiveWays(pool, { topic: undefined, url: to.url })).webhook?.state;

describe('a status webhook', () => {
  it('is a signed CloudEvent in structured mode whose data is the live message', async () => {
    await commit('soup/3');
    await finish(webhookRelay());
    const [message = expect.fail()] = receiver.taken;
    expect(message).toMatchObject({ contentType: 'application/cloudevents+json', subject: 'soup', sequence: 3 });
    expect(message.event).toEqual({
      specversion: '1.0',
      id: 'soup/3',
      source: 'https://us.test/live',
      type: 'expediter.order.status-changed.v1',
      subject: 'soup',
      time: expect.any(String),
      datacontenttype: 'application/json',
      dataschema: 'urn:expediter:live-message:v1',
      sequence: '0000000003',
      data: expect.objectContaining({ serviceOrderId: 'soup', sequence: 3, locationId: 'club-1', status: 'received' }),
    });
    expect(await waiting()).toEqual([]);
  });

  it("sends an order's next message only after the one before was answered 2xx, while other orders continue", async () => {
    receiver.behave = ({ subject }) => (subject === 'stuck' ? { status: 500 } : undefined);
    const relay = webhookRelay();
    await commit('stuck/3', 'stuck/4', 'soup/3', 'soup/4', 'stuck/5');
    await finish(relay);
    expect(received().toSorted()).toEqual(['soup/3', 'soup/4', 'stuck/3']);

    receiver.behave = undefined;
    await pass();
    await finish(relay);
    expect(taken()).toEqual(['soup/3', 'soup/4', 'stuck/3', 'stuck/4', 'stuck/5']);
  });

  it.each([
    ['an answer other than 2xx', { status: 500 }],
    ['a redirect', { status: 307, headers: { location: '/elsewhere' } }],
    ['a lost answer', 'close'],
    ['an error although the receiver kept it', { status: 503, keeps: true }],
  ] as const)('is repeated by any process with the same id after %s', async (_, fault) => {
    receiver.behave = () => fault;
    await commit('soup/3');
    await finish(webhookRelay());
    receiver.behave = undefined;
    await pass();
    await finish(webhookRelay());
    const [first, second, ...others] = receiver.received;
    expect(others).toEqual([]);
    expect(second?.id).toBe(first?.id);
    expect(second?.event).toEqual(first?.event);
    expect(await waiting()).toEqual([]);
  });

  it.each(['is away', 'closes connections before it reads'])(
    'waits while the receiver %s, and is then taken in order',
    async (how) => {
      if (how === 'is away') await receiver.leave();
      else receiver.isDeaf = true;
      await commit('soup/3', 'soup/4');
      const relay = webhookRelay();
      await finish(relay);
      expect([received(), await waiting()]).toEqual([[], ['soup/3', 'soup/4']]);
      receiver.isDeaf = false;
      await receiver.comeBack();
      await pass();
      await finish(relay);
      expect(received()).toEqual(['soup/3', 'soup/4']);
    },
  );

  it('is repeated with the same id if its process died after the answer, and then the order continues', async () => {
    await commit('soup/3', 'soup/4');
    await webhookRelay().round();
    await pass();
    await finish(webhookRelay());
    expect(received()).toEqual(['soup/3', 'soup/3', 'soup/4']);
    expect(new Set(receiver.taken.map(({ id }) => id)).size).toBe(2);
  });

  it.each([
    ['the new one', () => receiver.secret, true],
    ['the old one', () => OTHER_SECRET, true],
    ['neither', () => `whsec_${Buffer.alloc(32, 'stranger').toString('base64')}`, false],
  ])(
    'is signed by the new and the old secret: a receiver that knows %s verifies it: %#',
    async (_, secretOf, isRight) => {
      const to = await startReceiver({ secret: secretOf() });
      await commit('soup/3');
      await finish(webhookRelay({ to, secrets: [receiver.secret, OTHER_SECRET] }));
      expect([to.taken.length, to.refused()]).toEqual(isRight ? [1, 0] : [0, 1]);
      expect(await waiting()).toEqual(isRight ? [] : ['soup/3']);
      await to.stop();
    },
  );
});

describe('with a topic and a webhook', () => {
  it('a receiver that fails does not hold up the topic, and then gets everything in order, while the topic gets nothing twice', async () => {
    receiver.behave = () => ({ status: 500 });
    const relays = both();
    await commit('soup/3', 'soup/4', 'cake/3', 'soup/5');
    await finish(...relays);
    expect(onTopic.toSorted()).toEqual(['cake/3', 'soup/3', 'soup/4', 'soup/5']);
    expect(taken()).toEqual([]);

    receiver.behave = undefined;
    await pass();
    await finish(...relays);
    expect(onTopic).toHaveLength(4);
    expect(taken().toSorted()).toEqual(['cake/3', 'soup/3', 'soup/4', 'soup/5']);
    expect(taken().filter((message) => message.startsWith('soup'))).toEqual(['soup/3', 'soup/4', 'soup/5']);
  });

  it('a message leaves the outbox only after both have taken it, and is then kept once for followers', async () => {
    const [topic, webhook] = both();
    await commit('soup/3');
    await finish(topic);
    expect(await waiting()).toEqual(['soup/3']);
    await finish(webhook);
    await finish(topic);
    expect(await waiting()).toEqual([]);
    expect((await pool.query('SELECT FROM live_messages')).rowCount).toBe(1);
    expect([onTopic, taken()]).toEqual([['soup/3'], ['soup/3']]);
  });

  it('both ways claim a new message at once, although each skips what another claim has locked', async () => {
    const [topic, webhook] = both();
    for (let sequence = 1; sequence <= 30; sequence += 1) {
      await commit(`soup/${sequence}`);
      expect(await Promise.all([topic.round(), webhook.round()])).toEqual([1, 1]);
    }
  });

  it('a message that one way has taken is marked although the other way claims it at the same moment', async () => {
    const relay = webhookRelay({ isOnly: false });
    await commit('soup/3');
    await relay.round();
    await whileTopicClaims(() => relay.round());
    expect((await pool.query('SELECT webhook_done FROM outbox')).rows).toEqual([{ webhook_done: true }]);
  });

  it('a message that one way could not send is repeated soon although the other way claims it at the same moment', async () => {
    const relay = webhookRelay({ isOnly: false });
    await commit('soup/3');
    const [came, answers] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    receiver.behave = async () => {
      came.resolve();
      await answers.promise;
      return { status: 500 };
    };
    const turn = relay.round();
    await came.promise;
    await whileTopicClaims(() => (answers.resolve(), turn));
    const { rows } = await pool.query(`SELECT webhook_lease_until < now() + interval '2 s' AS soon FROM outbox`);
    expect(rows).toEqual([{ soon: true }]);
  });

  it('no message is lost if the webhook is added to the topic and removed again, and the topic gets nothing again', async () => {
    await commit('soup/1', 'soup/2', 'cake/1');
    await topicRelay({ isOnly: true }).round();
    await commit('soup/3');
    await pass();
    receiver.behave = ({ subject }) => (subject === 'cake' ? { status: 500 } : undefined);
    await finish(...both());
    const before = [...onTopic];
    await commit('soup/4');
    await pass();
    await finish(topicRelay({ isOnly: true }));
    expect(await waiting()).toEqual([]);
    for (const message of ['soup/1', 'soup/2', 'soup/3', 'cake/1']) expect(before).toContain(message);
    expect(onTopic.slice(before.length)).toEqual(['soup/4']);
    expect(taken()).toEqual(['soup/1', 'soup/2', 'soup/3']);
  });

  it('what a process without the webhook has sent by the topic alone comes by a resend', async () => {
    const since = new Date(Date.now() - 60_000);
    const relays = both();
    receiver.behave = () => ({ status: 500 });
    await commit('soup/1');
    await finish(...relays);
    // A process of the version before, or one that has not got the variable yet, while the others run.
    await commit('soup/2');
    await pass();
    await finish(topicRelay({ isOnly: true }));
    receiver.behave = () => undefined;
    await finish(...relays);
    expect([await waiting(), taken()]).toEqual([[], []]);
    expect(await resendLive(pool, { since, way: 'webhook' })).toBe(2);
    await finish(...both());
    expect(taken()).toEqual(['soup/1', 'soup/2']);
  });
});

describe('a receiver of status webhooks', () => {
  it('is stopped at once by 410, also for other processes and by no later failure started again, until it is resumed', async () => {
    const [one, other] = [webhookRelay(), webhookRelay()];
    await commit('slow/3');
    const came = Promise.withResolvers<void>();
    receiver.behave = () => (came.resolve(), 'hang');
    const failing = other.round();
    await came.promise;
    await commit('soup/3', 'soup/4', 'cake/3');
    receiver.behave = ({ subject }) => ({ status: subject === 'soup' ? 410 : 500 });
    await one.round();
    expect(await stateOf()).toBe('stopped');
    // The other process's message fails later than the stop.
    await receiver.leave();
    await failing;
    await receiver.comeBack();
    expect(await stateOf()).toBe('stopped');

    receiver.behave = undefined;
    await pass();
    await finish(one, other, webhookRelay());
    expect(taken()).toEqual([]);
    // The board and the metrics say so.
    await pool.query(`UPDATE outbox SET applied_at = applied_at - interval '1 min'`);
    expect((await sampleAttention(pool)).unnotified[0]?.stoppedAt).toEqual(expect.any(String));
    expect(await sampleBacklog(pool, { PLACEMENT_DEADLINE_S: 60 })).toMatchObject({ webhookStopped: 1 });
    await pool.query(`UPDATE outbox SET applied_at = applied_at + interval '1 min'`);

    expect(await resumeEndpoint(pool)).toBe(true);
    await finish(one, other);
    expect(await waiting()).toEqual([]);
    expect(taken().toSorted()).toEqual(['cake/3', 'slow/3', 'soup/3', 'soup/4']);
    expect(taken().indexOf('soup/3')).toBeLessThan(taken().indexOf('soup/4'));
  });

  it.each([
    ['is stopped after three days of failures', '73 hours', '1 minute', 'stopped'],
    ['is not stopped before', '71 hours', '1 minute', 'failing'],
    ['is not stopped by a failure of three days ago and one of now', '73 hours', '72 hours', 'failing'],
  ])('%s', async (_, since, last, state) => {
    receiver.behave = () => ({ status: 500 });
    await commit('soup/3');
    await finish(webhookRelay());
    expect(await stateOf()).toBe('failing');
    await pool.query(
      'UPDATE status_endpoints SET failing_since = now() - $1::interval, failed_at = now() - $2::interval',
      [since, last],
    );
    await pass();
    await finish(webhookRelay());
    expect(await stateOf()).toBe(state);
  });

  it('works again after one success', async () => {
    receiver.behave = () => ({ status: 500 });
    await commit('soup/3');
    const relay = webhookRelay();
    await finish(relay);
    receiver.behave = undefined;
    await pass();
    await finish(relay);
    expect(await stateOf()).toBe('working');
  });

  it('is called at a new URL although the old one is stopped', async () => {
    receiver.behave = () => ({ status: 410 });
    await commit('soup/3', 'soup/4');
    await finish(webhookRelay());
    expect(await stateOf()).toBe('stopped');
    const to = await startReceiver();
    await pass();
    await finish(webhookRelay({ to }));
    expect(taken(to)).toEqual(['soup/3', 'soup/4']);
    expect(await stateOf(to)).toBe('working');
    await to.stop();
  });

  it('counts as failing for an hour after its last failure, because its URL may have been removed meanwhile', async () => {
    const sampled = async () => {
      const { webhookFailing, webhookStopped } = await sampleBacklog(pool, { PLACEMENT_DEADLINE_S: 60 });
      return [webhookFailing > 0, webhookStopped, await stateOf()];
    };
    receiver.behave = () => ({ status: 500 });
    await commit('soup/3');
    await finish(webhookRelay());
    expect(await sampled()).toEqual([true, 0, 'failing']);
    await pool.query(
      `UPDATE status_endpoints SET failing_since = now() - interval '2 h', failed_at = now() - interval '61 min'`,
    );
    expect(await sampled()).toEqual([false, 0, 'working']);
    await pool.query('UPDATE status_endpoints SET stopped_at = failed_at');
    expect(await sampled()).toEqual([true, 1, 'stopped']);
  });

  it('gets one message at a time while it is down, and all the others after one was taken', async () => {
    receiver.behave = () => ({ status: 500 });
    const relay = webhookRelay();
    const messages = Array.from({ length: 30 }, (_, nth) => `order-${nth}/3`);
    await commit(...messages);
    expect(await relay.round()).toBe(30);
    await pass();
    // It rests first.
    expect(await until(async () => (await relay.round()) || undefined)).toBe(1);
    expect(receiver.received).toHaveLength(31);

    receiver.behave = undefined;
    await pass();
    expect(await until(async () => (await relay.round()) || undefined)).toBe(1);
    expect(await relay.round()).toBe(29);
    expect(taken().toSorted()).toEqual(messages.toSorted());
  });

  it('that refuses some orders gets the others, although those that it refuses are older and make it look down', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    receiver.behave = ({ subject }) => (subject.startsWith('refused') ? { status: 500 } : undefined);
    const relay = webhookRelay();
    await commit(...Array.from({ length: 25 }, (_, nth) => `refused-${nth}/3`));
    expect(await relay.round()).toBe(25);
    await commit('soup/3');
    // Half a minute passes: the rest is over, and so is the wait of each message.
    const turn = async (): Promise<void> => {
      vi.advanceTimersByTime(31_000);
      await pass();
      expect(await relay.round()).toBe(1);
    };
    await turn();
    expect(taken()).toEqual(['soup/3']);
    // One that was tried during an outage comes before those that were refused more often.
    vi.advanceTimersByTime(31_000);
    await pass();
    await relay.round();
    await commit('cake/3');
    await pool.query(`UPDATE outbox SET webhook_attempts = 1 WHERE service_order_id = 'cake'`);
    await turn();
    expect(taken()).toEqual(['soup/3', 'cake/3']);
  });

  it('that answers many messages late still gets the others at once', async () => {
    const late = Array.from({ length: 250 }, (_, nth) => `late-${nth}/3`);
    receiver.behave = ({ subject }) => (subject.startsWith('late') ? 'hang' : undefined);
    const relay = webhookRelay();
    await commit(...late, 'soup/3', 'soup/4');
    relay.start();
    await until(() => taken().length === 2);
    expect(taken()).toEqual(['soup/3', 'soup/4']);
    // None of them was answered, or given up.
    expect(
      received()
        .filter((message) => message.startsWith('late'))
        .toSorted(),
    ).toEqual(late.toSorted());
    await receiver.leave();
    await relay.stop();
  });

  it.each([
    ['respected', '120', 60, 120],
    ['five minutes at most', '86400', 240, 300],
  ])('that names a Retry-After is asked again no earlier: %s', async (_, seconds, least, most) => {
    receiver.behave = () => ({ status: 429, headers: { 'retry-after': seconds } });
    await commit('soup/3');
    await finish(webhookRelay());
    const { rows } = await pool.query<{ waits: boolean }>(
      `SELECT webhook_lease_until BETWEEN now() + make_interval(secs => $1) AND now() + make_interval(secs => $2) AS waits FROM outbox`,
      [least, most],
    );
    expect(rows).toEqual([{ waits: true }]);
  });
});

describe('resending', () => {
  it("repeats the messages of a time, each order's lowest first, only by the named way, and followers read none of them twice", async () => {
    const relays = both();
    await commit('soup/1', 'soup/2', 'cake/1');
    await finish(...relays);
    await pool.query(
      `UPDATE live_messages SET published_at = now() - interval '1 day' WHERE service_order_id = 'cake'`,
    );
    const feed = orderFeed({ pool, log: { error: () => {} } });
    const read: number[] = [];
    const leave = feed.follow('soup', 0, (news) =>
      read.push(...(news?.messages ?? []).map(({ sequence }) => sequence)),
    );
    await until(() => read.length === 2);

    const since = new Date(Date.now() - 3_600_000);
    expect(await resendLive(pool, { since, way: 'webhook' })).toBe(2);
    expect(await waiting()).toEqual(['soup/1', 'soup/2']);
    // Nobody waits for them, so no alarm counts them.
    const { oldestAppliedAt } = await readLiveWays(pool, { topic: 'order-status', url: receiver.url });
    expect(oldestAppliedAt).toBeNull();
    const { oldestUnpublished } = await sampleBacklog(pool, { PLACEMENT_DEADLINE_S: 60 });
    expect(oldestUnpublished).toBe(0);
    expect((await sampleAttention(pool)).unnotified).toEqual([]);
    // A process that runs reads the whole outbox every minute.
    const later = both();
    await finish(...later);
    await commit('soup/3');
    await finish(...later);
    feed.wake();
    await until(() => read.length === 3);
    expect(read).toEqual([1, 2, 3]);
    leave();
    await feed.stop();

    expect(taken().slice(3)).toEqual(['soup/1', 'soup/2', 'soup/3']);
    expect(receiver.taken[3]?.id).toBe(receiver.taken.find(({ subject }) => subject === 'soup')?.id);
    expect(onTopic.toSorted()).toEqual(['cake/1', 'soup/1', 'soup/2', 'soup/3']);
    expect(await waiting()).toEqual([]);
  });

  it('by all ways repeats each message by both, and ends with what was published meanwhile', async () => {
    const relays = both();
    await commit('soup/1', 'soup/2');
    await finish(...relays);
    expect(await resendLive(pool, { since: new Date(0) })).toBe(2);
    await finish(...both());
    expect(onTopic).toEqual(['soup/1', 'soup/2', 'soup/1', 'soup/2']);
    expect(taken()).toEqual(['soup/1', 'soup/2', 'soup/1', 'soup/2']);
    expect(await waiting()).toEqual([]);
  });
});
