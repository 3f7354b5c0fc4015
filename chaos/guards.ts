/** A guard of the service, how to remove it, and what notices that. */
export type Mutation = {
  guard: string;
  file: string;
  /** The text in the file, which occurs exactly once, and its replacement. */
  edits: readonly (readonly [from: string, to: string])[];
  /** A command that passes with the guard, and must fail without it. */
  noticedBy: readonly string[];
};

const vitest = (file: string, test: string): string[] => [
  'node_modules/vitest/vitest.mjs',
  'run',
  `--config=${file.startsWith('test/process/') ? 'vitest.process.config.ts' : 'vitest.config.ts'}`,
  file,
  '-t',
  test,
];
const chaos = (only: string, seconds = 15, ordersPerSecond = 8): string[] => [
  'chaos/chaos.ts',
  '--seed=7',
  `--seconds=${seconds}`,
  '--recovery=60',
  `--orders=${ordersPerSecond}`,
  `--only=${only}`,
];

export const MUTATIONS: readonly Mutation[] = [
  {
    guard: 'a token opens its own location and integration alone',
    file: 'src/http/webhook-door.ts',
    edits: [['if (scope?.integration !== integration || scope.locationId !== locationId)', 'if (scope === undefined)']],
    noticedBy: chaos('foreign'),
  },
  {
    guard: 'a follow token opens what it was signed for alone',
    file: 'src/http/follow/follow-token.ts',
    edits: [['if (aud !== settings.audience) ', 'if (aud === undefined) ']],
    noticedBy: vitest('test/http/follow/follow-token.test.ts', 'is refused with aud'),
  },
  {
    guard: 'an event is applied to orders of its own location alone',
    file: 'src/core/statuses/apply-events.ts',
    edits: [
      [
        'WHERE orders.service_order_id = event.target AND orders.location_id = event.location_id',
        'WHERE orders.service_order_id = event.target',
      ],
    ],
    noticedBy: chaos('foreign'),
  },
  {
    guard: 'only a higher rank moves an order',
    file: 'src/core/statuses/apply-events.ts',
    edits: [['(SELECT ours AND rank > reached AS moves', '(SELECT ours AND rank <> reached AS moves']],
    noticedBy: chaos('reorder,delay'),
  },
  {
    guard: 'the row lock on orders',
    file: 'src/core/statuses/apply-events.ts',
    edits: [['    FOR UPDATE\n  ) AS o ON true', '  ) AS o ON true']],
    noticedBy: vitest('test/core/statuses/return-journey.test.ts', '20 concurrent copies'),
  },
  {
    guard: 'orders are locked in the order of their keys',
    file: 'src/core/statuses/apply-events.ts',
    edits: [['  ORDER BY target, location_id, nth -- and locked so\n), matched', '), matched']],
    noticedBy: vitest('test/core/statuses/apply-webhooks.test.ts', 'the other way round'),
  },
  {
    guard: 'a location is asked by one process, once a minute',
    file: 'src/core/asks/claim-quiet.ts',
    edits: [['      WHERE a.next_ask_at <= now()\n    RETURNING', '    RETURNING']],
    noticedBy: vitest('test/core/asks/asks.test.ts', 'to the process that was quicker'),
  },
  {
    guard: 'an answer is about the order that was asked about',
    file: 'src/core/asks/quiet-asker.ts',
    edits: [["throw new Poison('the answer is of another order')", 'void Poison']],
    noticedBy: vitest('test/core/asks/asks.test.ts', 'of another order'),
  },
  {
    guard: 'a missing order counts from the first such answer',
    file: 'src/core/placements/fetch-once.ts',
    edits: [['return missingS > deps.missingS', 'return job.age > deps.missingS']],
    noticedBy: chaos('platform-null', 30),
  },
  {
    guard: 'a 503 proves nothing where the POS does not deduplicate',
    file: 'src/core/domain/perhaps-taken.ts',
    edits: [['if (deduplicates || error.httpStatus === undefined)', 'if (deduplicates || error !== undefined)']],
    noticedBy: chaos('takes-and-503', 30),
  },
  {
    guard: 'no call begins late on a machine that was suspended',
    file: 'src/core/placements/call-provider.ts',
    edits: [['if (sinceAsked() > BEGIN_WITHIN_MS) return undefined;', '']],
    noticedBy: vitest('test/core/placements/forward-journey.test.ts', 'suspended before the call'),
  },
  {
    guard: 'the lease covers a slow call',
    file: 'src/core/domain/attempt-limit.ts',
    edits: [
      [
        'return attemptLimit(provider) + SPARE_S;',
        'return attemptLimit({ ...provider, attemptWithinS: 15 }) + SPARE_S;',
      ],
    ],
    noticedBy: vitest('test/process/slow-pos.test.ts', 'called by no other process'),
  },
  {
    guard: 'the member is told of an order that ended before it was placed',
    file: 'src/core/placements/fail-placement.ts',
    edits: [['WHERE o.rank <= ${RANK_SENT}\n', 'WHERE o.rank <= ${RANK_SENT} AND o.ended_at IS NULL\n']],
    noticedBy: vitest('test/core/placements/store-order-ref.test.ts', 'the member is told why'),
  },
  {
    guard: 'our key on the call to the POS',
    file: 'src/providers/standard/call-standard.ts',
    edits: [["'application/json', 'idempotency-key': id", "'application/json'"]],
    noticedBy: chaos('drop-answer'),
  },
  {
    guard: 'findOrder before a retry',
    file: 'src/core/placements/settle-doubt.ts',
    edits: [['    : deduplicates\n', '    : deduplicates !== undefined\n']],
    noticedBy: vitest('test/process/process.test.ts', 'POS that can be asked'),
  },
  {
    guard: 'the attempt is written down before the call',
    file: 'src/core/placements/record-attempt.ts',
    edits: [
      [
        'INSERT INTO placement_attempts (service_order_id, attempt, call) SELECT $1, attempts, $3 FROM p',
        'INSERT INTO placement_attempts (service_order_id, attempt, call, ended_at) SELECT $1, attempts, $3, now() FROM p',
      ],
    ],
    noticedBy: vitest('test/process/process.test.ts', 'does not repeat it blindly'),
  },
  {
    guard: 'the outbox in the same commit',
    file: 'src/core/statuses/apply-webhooks.ts',
    edits: [
      [
        'applyingEvents(EVENTS.as, PARK_TTL_S, FIRST_RECEIVED_AT, { tells, says })',
        "applyingEvents(EVENTS.as, PARK_TTL_S, FIRST_RECEIVED_AT, { tells, says }).replace(/(INSERT INTO outbox[^]*?WHERE )/, '$1false AND ')",
      ],
      [
        '  const row = rows[0];\n  const best',
        `  await client.query(
    \`INSERT INTO outbox (service_order_id, sequence, rank)
     SELECT DISTINCT e.service_order_id, e.sequence, a.rank
     FROM status_events e JOIN unnest($1::uuid[], $2::text[], $3::int[]) AS a(webhook_id, status, rank)
       USING (webhook_id, status)
     WHERE e.outcome = 'applied'\`,
    [arrived.map((item) => item.webhookId), arrived.map((item) => item.event.status), arrived.map((item) => item.rank)],
  );
  const row = rows[0];
  const best`,
      ],
    ],
    noticedBy: chaos('commit'),
  },
  {
    guard: 'the relay stops at an order whose message failed',
    file: 'src/core/live/claim-lowest.ts',
    edits: [
      [
        `      AND NOT EXISTS (SELECT FROM outbox e
                      WHERE e.service_order_id = o.service_order_id AND e.sequence < o.sequence
                      OFFSET 0)
`,
        '',
      ],
    ],
    noticedBy: chaos('publish'),
  },
  {
    guard: 'a row leaves the outbox after its message is out',
    file: 'src/core/live/publish-live.ts',
    edits: [
      [
        '      const messageId = await deps.publish(',
        '      await forget(row);\n      const messageId = await deps.publish(',
      ],
    ],
    noticedBy: chaos('publish'),
  },
  {
    guard: 'the drain',
    file: 'src/serve.ts',
    edits: [['  await running.drain();\n', '']],
    noticedBy: vitest('test/process/process.test.ts', 'is not ready at once'),
  },
  {
    guard: 'what is sealed opens in its own row alone',
    file: 'src/core/locations/settings-key.ts',
    edits: [['if (sealedFor !== place) throw', 'if (sealedFor === 0) throw']],
    noticedBy: vitest('test/cli/rekey-command.test.ts', 'in the row of another'),
  },
  {
    guard: 'settings that one location has opened are not open to another',
    file: 'src/core/locations/locations.ts',
    edits: [
      ['opened.get(locationId)', 'opened.get(sealedSettings)'],
      ['opened.set(locationId, ', 'opened.set(sealedSettings, '],
    ],
    noticedBy: vitest('test/cli/rekey-command.test.ts', 'in the row of another'),
  },
  {
    guard: 'a grant is of its own settings alone',
    file: 'src/core/locations/credential-store.ts',
    edits: [['return `credentials/${key}`;', "return `credentials/${key === '' ? key : ''}`;"]],
    noticedBy: vitest('test/core/locations/credential-store.test.ts', 'in the row of other settings'),
  },
  {
    guard: 'what an earlier version sealed is bound to its row',
    file: 'src/core/locations/rekey.ts',
    edits: [['if (keyId === newest && isBound)', 'if (keyId === newest)']],
    noticedBy: vitest('test/cli/rekey-command.test.ts', 'binds what an earlier version sealed'),
  },
  {
    guard: 'headers are stored in clear by a list',
    file: 'src/core/statuses/keep-arrived.ts',
    edits: [['for (const name of kept) {', 'for (const name in all) {']],
    noticedBy: vitest('test/core/statuses/return-journey.test.ts', 'dropped, kept whole'),
  },
  {
    guard: 'a provider names the headers that it reads',
    file: 'src/providers/standard/sign.ts',
    edits: [['readonly string[] = [ID, TIMESTAMP]', 'readonly string[] = []']],
    noticedBy: vitest('test/providers/standard.test.ts', 'reads no header but'),
  },
  {
    guard: 'no header has our token',
    file: 'src/core/statuses/keep-arrived.ts',
    edits: [['headers[name] = blankToken(value, token)', 'headers[name] = value']],
    noticedBy: vitest('test/core/statuses/return-journey.test.ts', 'dropped, kept whole'),
  },
  {
    guard: 'a body with our token is sealed',
    file: 'src/core/statuses/blank-token.ts',
    edits: [["return body.includes(run, 'latin1');", 'return false;']],
    noticedBy: vitest('test/core/statuses/return-journey.test.ts', 'a body with our token in it'),
  },
  {
    guard: 'what is sealed of a webhook about an erased order is not kept',
    file: 'src/core/statuses/apply-webhooks.ts',
    edits: [['`CASE WHEN erased THEN NULL ELSE d.sealed END`', '`d.sealed`']],
    noticedBy: vitest('test/core/replay/replay-retention.test.ts', 'a webhook with our token in its body'),
  },
  {
    guard: 'what nothing proves to be of the POS has a quota',
    file: 'src/core/statuses/keep-arrived.ts',
    edits: [['if (dropped?.unproven === true) {', 'if (dropped?.unproven === undefined) {']],
    noticedBy: vitest('test/core/statuses/return-journey.test.ts', 'a flood'),
  },
  {
    guard: 'the quota is that of all processes',
    file: 'src/core/statuses/drop-quota.ts',
    edits: [['OR d.bytes + excluded.bytes <= $4::bigint', 'OR true']],
    noticedBy: vitest('test/core/statuses/return-journey.test.ts', 'a flood'),
  },
  {
    guard: "Postgres's clock",
    file: 'src/http/webhook-door.ts',
    edits: [['receivedAt: deps.now(),', 'receivedAt: new Date(),']],
    noticedBy: chaos('clock,kill'),
  },
  {
    guard: 'a late answer about the time is not believed',
    file: 'src/core/postgres/database-clock.ts',
    edits: [['if (mayBothBeRight && knownWithinMs < withinMs) return;', '']],
    noticedBy: vitest('test/core/postgres/database-clock.test.ts', 'does not make it worse'),
  },
  {
    guard: 'a clock that was set is followed',
    file: 'src/core/postgres/database-clock.ts',
    edits: [['if (mayBothBeRight && knownWithinMs < withinMs) return;', 'if (knownWithinMs < withinMs) return;']],
    noticedBy: vitest('test/core/postgres/database-clock.test.ts', 'is followed at once'),
  },
  {
    guard: 'a connection with a stale prepared statement is not lent again',
    file: 'src/core/postgres/with-client.ts',
    edits: [['(?:21|22|23|40|54|55|57014)', '(?:0A|21|22|23|40|54|55|57014)']],
    noticedBy: vitest('test/database.test.ts', 'made stale'),
  },
  {
    guard: 'a connection to a server that takes no writes is not lent again',
    file: 'src/core/postgres/with-client.ts',
    edits: [['(?:21|22|23|40|54|55|57014)', '(?:21|22|23|25006|40|54|55|57014)']],
    noticedBy: vitest('test/process/failover.test.ts', 'leads to the old primary'),
  },
  {
    guard: 'a connection whose state is unknown is not lent again',
    file: 'src/core/postgres/with-client.ts',
    edits: [['client.release(broken);', 'client.release();']],
    noticedBy: chaos('failover', 20),
  },
  {
    guard: 'the connections that carry webhooks are kept',
    file: 'src/periodic-work.ts',
    edits: [
      [
        'const flushing = Array.from({ length: flushPool.idleCount - 1 }, () => databaseState(flushPool));',
        'const flushing: Promise<unknown>[] = [];',
      ],
    ],
    noticedBy: vitest('test/http/webhook-wire.test.ts', 'connections that carry webhooks'),
  },
  {
    guard: 'after a restore, messages are numbered above what readers have seen',
    file: 'src/core/live/sequence-floor.ts',
    edits: [['`greatest(${last}, (SELECT floor FROM sequence_floor WHERE id)) + 1`', '`${last} + 1`']],
    noticedBy: vitest('test/core/live/renumber.test.ts', 'renumbered after a restore'),
  },
  {
    guard: 'parked events go on when their POS id becomes known',
    file: 'src/core/statuses/redrive-parked.ts',
    edits: [
      [
        'DELETE FROM parked_events w\n  WHERE w.location_id',
        'DELETE FROM parked_events w\n  WHERE false AND w.location_id',
      ],
    ],
    noticedBy: chaos('early'),
  },
  {
    guard: 'a log that nobody reads does not stop the process',
    file: 'src/log-output.ts',
    edits: [
      [
        "if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return false;",
        "if ((error as NodeJS.ErrnoException).code === 'EAGAIN') continue;",
      ],
    ],
    noticedBy: chaos('logstop', 30, 30),
  },
  {
    guard: 'a flusher waits briefly for a lock',
    file: 'src/database.ts',
    edits: [['lockMs: 150,', 'lockMs: 2_000,']],
    noticedBy: chaos('lock', 30),
  },
  {
    guard: 'a webhook that waits for a lock waits aside',
    file: 'src/core/statuses/batch-webhooks.ts',
    edits: [['if (inTime.length <= 1) return setAside(inTime);', 'if (inTime.length <= 1) return flush(inTime);']],
    noticedBy: chaos('lock', 30),
  },
  {
    guard: 'the next webhook about a locked order goes aside at once',
    file: 'src/core/statuses/known-locked.ts',
    edits: [['if (until.size === 0) return false;', 'if (until.size >= 0) return false;']],
    noticedBy: vitest('test/core/statuses/locked-rows.test.ts', 'the row of its order'),
  },
  {
    guard: 'a location gets a share of what is free',
    file: 'src/core/domain/within-share.ts',
    edits: [['own <= (limit - held) / 3', 'own <= limit / 4 && held <= limit']],
    noticedBy: chaos('hogs', 30),
  },
  {
    guard: 'strangers make room where connections are too many',
    file: 'src/http/bound-connections.ts',
    edits: [['if (open.size > most) makeRoom(socket);', '']],
    noticedBy: vitest('test/process/process.test.ts', '1,500 strangers'),
  },
  {
    guard: 'an address with more strangers than others makes room among its own',
    file: 'src/http/bound-connections.ts',
    edits: [['if (!crowds || from === own) return socket;', 'return socket;']],
    noticedBy: vitest('test/process/process.test.ts', 'come again at once'),
  },
  {
    guard: 'the relay starts where it was, below which an old snapshot keeps what is published',
    file: 'src/core/live/claim-lowest.ts',
    edits: [['    const since = startOf(began);', "    const since = startOf(began) && '-infinity';"]],
    noticedBy: vitest('test/core/live/publish-live.test.ts', 'since an old snapshot'),
  },
  {
    guard: 'what is due is looked for from where it was, below which an old snapshot keeps what is finished',
    file: 'src/core/placements/due-lanes.ts',
    edits: [["await look(pool, isEverything ? '-infinity' : mark, lost);", "await look(pool, '-infinity', lost);"]],
    noticedBy: vitest('test/core/placements/claim-placements.test.ts', 'since an old snapshot'),
  },
  {
    guard: 'no location gets more than its share of the workers',
    file: 'src/core/placements/choose-lanes.ts',
    edits: [
      ['if (underWay >= share || ofIntegration', 'if (ofIntegration'],
      ['turn <= room.share', 'turn <= 100'],
    ],
    noticedBy: vitest('test/core/placements/claim-placements.test.ts', 'than its share'),
  },
  {
    guard: 'of what waits under a POS id there is one of each status',
    file: 'src/core/statuses/apply-webhooks.ts',
    edits: [
      ['  ON CONFLICT (location_id, integration, provider_order_id, rank) DO UPDATE', '/*'],
      ['), best AS MATERIALIZED (', '*/), best AS MATERIALIZED ('],
    ],
    noticedBy: chaos('tills'),
  },
  {
    guard: 'events in one batch see what the ones before them told',
    file: 'src/core/statuses/apply-webhooks.ts',
    edits: [[': doTell(arrived)', ': arrived.length < 0']],
    noticedBy: vitest('test/core/statuses/batch-as-one-by-one.test.ts', 'claim one POS id'),
  },
  {
    guard: 'two batches do not tell one POS id as that of two orders',
    file: 'src/core/statuses/apply-webhooks.ts',
    edits: [['THEN 0 ELSE 1 END AS all_learnt', 'THEN 1 ELSE 1 END AS all_learnt']],
    noticedBy: vitest('test/core/statuses/batch-as-one-by-one.test.ts', 'in the same moment'),
  },
  {
    guard: 'the sweep finds what was parked while its POS id was being learnt',
    file: 'src/core/statuses/sweep-parked.ts',
    edits: [["AND ${isAwaited('p')}", 'AND false']],
    noticedBy: vitest('test/core/statuses/redrive-parked.test.ts', 'in the very moment'),
  },
  {
    guard: 'a spilled webhook is acknowledged after its commit',
    file: 'src/core/spill/drain-spill.ts',
    edits: [
      ['const { outcome, serviceOrderIds } =\n', 'message.ack();\n      const { outcome, serviceOrderIds } =\n'],
      ["      settle(message, 'ack');\n      deps.observe({", '      deps.observe({'],
    ],
    noticedBy: vitest('test/core/spill/spill.test.ts', 'whose commit fails'),
  },
  {
    guard: 'a spilled webhook is answered once Pub/Sub has it',
    file: 'src/core/spill/spill-webhook.ts',
    edits: [
      [
        'await withTimeout(deadline - Date.now(), () => deps.publish(data), late);',
        'void withTimeout(deadline - Date.now(), () => deps.publish(data), late).catch(() => {});',
      ],
    ],
    noticedBy: vitest('test/core/spill/spill.test.ts', 'and Pub/Sub as well'),
  },
  {
    guard: 'a spilled webhook keeps its id',
    file: 'src/core/spill/drain-spill.ts',
    edits: [
      [
        'const spilled = await openSpilled(deps.keys, message.data);',
        'const spilled = { ...(await openSpilled(deps.keys, message.data)), id: crypto.randomUUID() };',
      ],
    ],
    noticedBy: vitest('test/core/spill/spill.test.ts', 'delivered five times'),
  },
  {
    guard: 'a spilled webhook is sealed',
    file: 'src/core/spill/seal-spilled.ts',
    edits: [
      [
        "await seal(keys, { ...spilled, body: spilled.body.toString('base64') }, PLACE)",
        "JSON.stringify({ ...spilled, body: spilled.body.toString('base64') })",
      ],
      [
        "await unseal(keys, Buffer.from(data).toString('latin1'), PLACE)",
        "JSON.parse(Buffer.from(data).toString('latin1'))",
      ],
    ],
    noticedBy: vitest('test/core/spill/spill.test.ts', 'who has no key'),
  },
  {
    guard: 'a follow token is for our members alone',
    file: 'src/http/follow/follow-token.ts',
    edits: [['if (aud !== settings.audience) throw', "if (aud === '') throw"]],
    noticedBy: vitest('test/http/follow/follow-token.test.ts', 'is refused with aud'),
  },
  {
    guard: 'a member is told of their own order alone',
    file: 'src/core/live/order-feed.ts',
    edits: [['read.get(each.serviceOrderId);', '[...read.values()][0];']],
    noticedBy: chaos('kill'),
  },
  {
    guard: 'who comes back is told what came meanwhile',
    file: 'src/http/follow/follow-door.ts',
    edits: [['deps.follow(serviceOrderId, last, writeNews', 'deps.follow(serviceOrderId, undefined, writeNews']],
    noticedBy: vitest('test/http/follow/follow-door.test.ts', 'misses nothing that is kept'),
  },
  {
    guard: 'a look finds what took longer to commit than what came after it',
    file: 'src/core/live/changed-orders.ts',
    edits: [['pg_snapshot_xmin(pg_current_snapshot())', 'pg_snapshot_xmax(pg_current_snapshot())']],
    noticedBy: vitest('test/core/live/order-feed.test.ts', 'took longer to commit'),
  },
  {
    guard: 'a signal for a known order has it looked at again',
    file: 'src/core/placements/record-signal.ts',
    edits: [
      [
        'WHERE p.service_order_id = $1\n          AND CASE',
        'WHERE p.service_order_id = $1\n          AND false AND CASE',
      ],
    ],
    noticedBy: chaos('cancel'),
  },
  {
    guard: 'a signal that comes during a look is not lost',
    file: 'src/core/cancellations/claim-looks.ts',
    edits: [
      ['AND lease_id = $2::uuid AND signalled_at = $3::timestamptz', 'AND lease_id = $2::uuid'],
      ['AND signalled_at > $3::timestamptz', 'AND signalled_at < $3::timestamptz'],
    ],
    noticedBy: vitest('test/core/cancellations/lock-order.test.ts', 'during a look'),
  },
  {
    guard: 'a cancel and a change are decided under the lock of the order',
    file: 'src/core/cancellations/lock-order.ts',
    edits: [['WHERE service_order_id = $1::text FOR UPDATE', 'WHERE service_order_id = $1::text']],
    noticedBy: vitest('test/core/cancellations/lock-order.test.ts', 'waited for the lock'),
  },
  {
    guard: 'no ticket is created once the cancel is committed',
    file: 'src/core/placements/record-attempt.ts',
    edits: [[" AND (cancellation IS NULL OR $3 <> 'createOrder')", '']],
    noticedBy: vitest('test/core/cancellations/cancel-an-order.test.ts', 'no ticket is created'),
  },
  {
    guard: 'what is in doubt is not sent again once it is cancelled',
    file: 'src/core/placements/settle-doubt.ts',
    edits: [['const unrepeatable = cancelled\n', "const unrepeatable = cancelled && integration === ''\n"]],
    noticedBy: vitest('test/core/cancellations/cancel-an-order.test.ts', 'one that cannot be asked is asked to cancel'),
  },
  {
    guard: 'a missing ticket of a cancel counts a minute after the request',
    file: 'src/core/cancellations/cancel-at-pos.ts',
    edits: [['const ABSENT_AFTER_S = 60;', 'const ABSENT_AFTER_S = 0;']],
    noticedBy: vitest('test/core/cancellations/cancel-an-order.test.ts', 'counts a minute after the request'),
  },
  {
    guard: 'a cancel is written down before the call',
    file: 'src/core/cancellations/begin-cancel.ts',
    edits: [
      [
        'INSERT INTO placement_attempts (service_order_id, attempt, call) SELECT $1, attempts, $3 FROM p',
        'INSERT INTO placement_attempts (service_order_id, attempt, call, ended_at) SELECT $1, attempts, $3, now() FROM p',
      ],
    ],
    noticedBy: vitest('test/core/cancellations/cancel-an-order.test.ts', 'written down before it is made'),
  },
  {
    guard: 'a cancel of a process that died is in doubt',
    file: 'src/core/cancellations/cancel-at-pos.ts',
    edits: [["const state = claim.callDied ? 'in_doubt' : claim.state;", 'const { state } = claim;']],
    noticedBy: vitest('test/core/cancellations/cancel-an-order.test.ts', 'where the answer was died'),
  },
  {
    guard: 'a cancel whose answer was lost is in doubt where two are not one',
    file: 'src/core/cancellations/cancel-at-pos.ts',
    edits: [['if (!deduplicates && perhapsTaken(', 'if (deduplicates && perhapsTaken(']],
    noticedBy: chaos('cancel', 30, 12),
  },
  {
    guard: 'a cancel in doubt is not repeated where two are not one',
    file: 'src/core/cancellations/cancel-at-pos.ts',
    edits: [["(state === 'in_doubt' && provider.deduplicatesCancels !== true)", "state === 'asked'"]],
    noticedBy: chaos('cancel', 30, 12),
  },
  {
    guard: 'one request to cancel at a time at each location',
    file: 'src/core/cancellations/claim-cancellations.ts',
    edits: [['      AND c.location_id <> ALL (ARRAY(SELECT location_id FROM taken))\n', '']],
    noticedBy: vitest('test/core/cancellations/claim-cancellations.test.ts', 'one at a time'),
  },
  {
    guard: 'a refusal to cancel is told',
    file: 'src/core/cancellations/refuse-cancellation.ts',
    edits: [["UPDATE orders SET cancellation = 'refused', ", 'UPDATE orders SET ']],
    noticedBy: chaos('cancel', 30, 12),
  },
  {
    guard: 'what was sent once is repeated as it was sent',
    file: 'src/core/cancellations/look-again.ts',
    edits: [['  if (mayHaveTicket(known)) {', '  if (known.cancelling) {']],
    noticedBy: vitest('test/core/cancellations/look-again.test.ts', 'repeated as it was sent'),
  },
  {
    guard: 'a worker that has read an order before its change does not send it',
    file: 'src/core/cancellations/store-newest.ts',
    edits: [['failures = 0, lease_id = NULL, lease_until = NULL', 'failures = 0']],
    noticedBy: vitest('test/core/cancellations/look-again.test.ts', 'read the old order'),
  },
];
