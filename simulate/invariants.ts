/** Watches the numbered invariants of ARCHITECTURE.md while a run goes on. */
import type { Pool } from 'pg';
import type { LiveMessage } from '../src/core/domain/live-message.ts';
import type { Message } from '../test/support/queue-messages.ts';
import type { Request } from './network.ts';
import { asSimulator, type Party, type Schedule } from './schedule.ts';
import type { Outcome, Query } from './simulated-postgres.ts';

export type Invariants = {
  onArrive(from: Party, request: Request): Promise<void>;
  onResult(party: Party, label: string, query: Query, outcome: Outcome): void;
  /** A transaction waited this long for something other than Postgres. */
  onGap(party: Party, label: string, ms: number): void;
  onPublished(topic: string, message: Message): void;
  atEnd(): void;
};

type Attempt = { leased: boolean };

/** An order of the code's own locks never makes a cycle of waits. */
const DEADLOCK = '40P01';
/** A stored time may be this far from the true time: a webhook that waited in the spill, for example. */
const WRONG_BY_S = 120;

export function watchInvariants(about: {
  schedule: Schedule;
  pool: Pool;
  complain: (complaint: { what: string; order?: string; why: string }) => void;
}): Invariants {
  const { schedule, pool, complain } = about;
  const last = new Map<string, number>();

  /** 2 and 9: when a call arrives that may make or cancel a ticket, its attempt is committed, and a lease covers it. */
  const onCall = async (call: 'createOrder' | 'cancelOrder', order: string): Promise<void> => {
    const { rows } = await pool.query<Attempt>({
      name: `attempt of ${call}`,
      text: `SELECT EXISTS (
               SELECT FROM ${call === 'createOrder' ? 'placements' : 'cancellations'} q
               WHERE q.service_order_id = $1 AND q.lease_until > clock.clock_timestamp()) AS leased
             FROM placement_attempts WHERE service_order_id = $1 AND call = $2 LIMIT 1`,
      values: [order, call],
    });
    const [attempt] = rows;
    if (attempt === undefined)
      complain({ what: 'invariant 2', order, why: `${call} arrived without a committed attempt` });
  };

  return {
    onArrive: (from, { method, url, body }) =>
      asSimulator(async () => {
        if (method !== 'POST' || !/^[AB]\./.test(from.name) || url.hostname !== '127.0.0.1') return;
        const call =
          url.pathname === '/orders' ? 'createOrder' : url.pathname === '/cancel' ? 'cancelOrder' : undefined;
        if (call === undefined) return;
        const { serviceOrderId } = JSON.parse(body.toString()) as { serviceOrderId: string };
        await onCall(call, serviceOrderId);
      }),
    onResult(party, label, _, outcome) {
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
    /** 3 and 4: the messages of an order reach the topic in the order of their sequence, without gaps. */
    onPublished(topic, { data }) {
      if (topic !== 'order-status') return;
      const { serviceOrderId: order, sequence } = JSON.parse(data.toString()) as LiveMessage;
      const before = last.get(order) ?? 0;
      if (sequence > before + 1)
        complain({ what: 'invariant 4', order, why: `message ${sequence} came after ${before}` });
      last.set(order, Math.max(before, sequence));
    },
    atEnd() {
      schedule.note(`orders told ${last.size}, within ${WRONG_BY_S} s`);
    },
  };
}
