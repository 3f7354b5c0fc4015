/** Watches the numbered invariants of ARCHITECTURE.md while a run goes on. */
import { isDeepStrictEqual } from 'node:util';
import type { Pool } from 'pg';
import type { Kitchen } from '../chaos/send-status.ts';
import { ticketOf } from '../chaos/settle.ts';
import type { LiveMessage } from '../../src/core/domain/live-message.ts';
import type { Message } from '../../world/pubsub/queue-messages.ts';
import type { Request } from './network.ts';
import { asSimulator, BEGIN, type Party, type Schedule } from './schedule.ts';
import { labelOf } from './simulated-connection.ts';
import type { Outcome, Query } from './simulated-postgres.ts';

export type Invariants = {
  /** Called when a request arrives, and when its answer leaves, as long as its sender still waits for the answer. */
  onCall(from: Party, request: Request, when: 'arrives' | 'is answered'): Promise<void>;
  onResult(party: Party, query: Query, outcome: Outcome): void;
  /** A transaction waited this long for something other than Postgres. */
  onGap(party: Party, label: string, ms: number): void;
  onPublished(topic: string, message: Message): void;
  /** From now on, messages up to this sequence may be missing: the database forgot them, or they were never published. */
  onRestored(floor: number): void;
  /** Compares all orders with the topic. Called periodically. */
  check(): Promise<void>;
};

/** A cancellation past its deadline is a person's after this time. It is longer than a leap of time. */
const PERSONS_AFTER_S = 30;
/** The locks that the code takes itself never make a cycle of waits. */
const DEADLOCK = '40P01';
const CALLS: Readonly<Record<string, { call: string; queue: string }>> = {
  '/orders': { call: 'createOrder', queue: 'placements' },
  '/cancel': { call: 'cancelOrder', queue: 'cancellations' },
};

export function watchInvariants(about: {
  schedule: Schedule;
  pool: Pool;
  kitchens: readonly Kitchen[];
  complain: (complaint: { what: string; order?: string; why: string }) => void;
}): Invariants {
  const { schedule, pool, kitchens, complain } = about;
  const published = new Map<string, Set<number>>();
  let floor = 0;
  /** The leases under which attempts began, by process, call and order. */
  const leases = new Map<string, string>();

  return {
    onCall: (from, { method, url, headers, body }, when) =>
      asSimulator(async () => {
        const about = CALLS[url.pathname];
        if (about === undefined || method !== 'POST' || url.hostname !== '127.0.0.1') return;
        const { call, queue } = about;
        const sent = JSON.parse(body.toString()) as { serviceOrderId: string };
        const { serviceOrderId: order } = sent;
        const { rows } = await pool.query<{ isWritten: boolean; isLate: boolean; lease?: string }>({
          name: `attempt of ${call}`,
          text: `SELECT EXISTS (SELECT FROM placement_attempts
                                WHERE service_order_id = $1 AND call = $2 AND ended_at IS NULL) AS "isWritten",
                        q.lease_until <= clock.clock_timestamp() AS "isLate", q.lease_id AS lease
                 FROM (SELECT 1) AS one LEFT JOIN ${queue} q ON q.service_order_id = $1 AND q.finished_at IS NULL`,
          values: [order, call],
        });
        const [row] = rows;
        const why = (what: string): string => `${what} when the call ${call} of ${from.name} ${when}`;
        // A webhook may have told what became of the call before its answer does.
        if (when === 'arrives' && row?.isWritten !== true) {
          complain({ what: 'invariant 2', order, why: why('there is no started attempt') });
        }
        // A database that was restored does not know with which request the ticket was made.
        const isKnown = call === 'createOrder' && 'idempotency-key' in headers && floor === 0;
        const ticket = isKnown ? ticketOf(kitchens, order) : undefined;
        if (when === 'arrives' && ticket !== undefined && !isDeepStrictEqual(sent, ticket.order)) {
          complain({ what: 'repeat', order, why: why('it differs from the request that made the ticket') });
        }
        const key = `${from.name} ${call} ${order}`;
        const isTaken = typeof row?.lease === 'string' && row.lease !== leases.get(key);
        if (row?.isLate === true || isTaken) complain({ what: 'invariant 9', order, why: why('the lease is over') });
      }),
    onResult(party, query, outcome) {
      const label = labelOf(query);
      if (/^begin-(?:attempt|cancel)$/.test(label) && 'result' in outcome && outcome.result.rowCount === 1) {
        const [order, lease, call] = query.values as [string, string, string];
        leases.set(`${party.name} ${call} ${order}`, lease);
      }
      if ('error' in outcome && 'code' in outcome.error && outcome.error.code === DEADLOCK) {
        complain({ what: 'invariant 1', why: `${party.name} was in a deadlock: ${label}` });
      }
    },
    onGap(party, label, ms) {
      complain({
        what: 'invariant 5',
        why: `${party.name} waited ${ms.toFixed(1)} ms in a transaction before ${label}`,
      });
    },
    onPublished(topic, { data }) {
      if (topic !== 'order-status') return;
      const { serviceOrderId: order, sequence } = JSON.parse(data.toString()) as LiveMessage;
      const before = published.get(order) ?? new Set();
      if (sequence > Math.max(1, floor + 1) && !before.has(sequence - 1)) {
        complain({ what: 'invariant 4', order, why: `message ${sequence} came before message ${sequence - 1}` });
      }
      published.set(order, before.add(sequence));
    },
    onRestored(to) {
      floor = to;
    },
    check: () =>
      asSimulator(async () => {
        const { rows } = await pool.query<{ id: string; sequence: number; waiting: number[]; isWrong: boolean }>({
          name: 'check-invariants',
          text: `SELECT o.service_order_id AS id, o.sequence,
                        ARRAY(SELECT x.sequence FROM outbox x WHERE x.service_order_id = o.service_order_id) AS waiting,
                        EXISTS (SELECT FROM placement_attempts a
                                WHERE a.service_order_id = o.service_order_id
                                  AND NOT (a.started_at BETWEEN $1 AND clock.clock_timestamp())) AS "isWrong"
                 FROM orders o`,
          values: [new Date(BEGIN)],
        });
        for (const { id: order, sequence, waiting, isWrong } of rows) {
          const known = published.get(order);
          for (let each = floor + 1; each <= sequence; each += 1) {
            if (known?.has(each) === true || waiting.includes(each)) continue;
            complain({ what: 'invariant 3', order, why: `message ${each} is neither in the outbox nor published` });
          }
          if (isWrong)
            complain({ what: 'invariant 8', order, why: 'the time of an attempt is not the time of Postgres' });
        }
        const { rows: wrong } = await pool.query<{ id: string }>({
          name: 'check-times',
          text: `SELECT id FROM webhooks WHERE received_at NOT BETWEEN $1 AND clock.clock_timestamp() + interval '1 s'`,
          values: [new Date(BEGIN)],
        });
        for (const { id } of wrong) complain({ what: 'invariant 8', why: `webhook ${id} came at an impossible time` });
        const { rows: late } = await pool.query<{ id: string }>({
          name: 'check-cancellations',
          text: `SELECT c.service_order_id AS id FROM cancellations c JOIN placements p USING (service_order_id)
                 WHERE c.finished_at IS NULL AND c.next_attempt_at < 'infinity' AND p.state = 'sent'
                   AND c.deadline_at < clock.clock_timestamp() - make_interval(secs => $1)`,
          values: [PERSONS_AFTER_S],
        });
        for (const { id: order } of late) {
          complain({ what: 'late cancellation', order, why: 'its deadline is over, and no person was told' });
        }
        schedule.note(`${rows.length} orders are checked`);
      }),
  };
}
