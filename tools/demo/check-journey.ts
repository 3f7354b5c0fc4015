import { memberStateAt, rankOf, type MemberState } from '../../src/core/domain/lifecycle.ts';
import type { LiveMessage } from '../../src/core/domain/live-message.ts';
import type { Ticket } from '../../world/pos/simulator.ts';
import type { PlacedOrder } from './place-orders.ts';

/** What the member and the kitchen saw of one order. */
export type Journey = PlacedOrder & {
  memberStates: MemberState[];
  sequences: number[];
  ticketsAtPos: number;
};

export function journeyOf(order: PlacedOrder, messages: readonly LiveMessage[], tickets: readonly Ticket[]): Journey {
  return {
    ...order,
    memberStates: messages.map((message) => message.memberState),
    sequences: messages.map((message) => message.sequence),
    ticketsAtPos: tickets.filter((ticket) => ticket.serviceOrderId === order.serviceOrderId).length,
  };
}

/** @returns a sentence that names the broken promise, or undefined */
export function checkJourney({
  serviceOrderId,
  fulfillment,
  memberStates,
  sequences,
  ticketsAtPos,
  expected,
}: Journey): string | undefined {
  const name = `the ${fulfillment === null ? '' : `${fulfillment} `}order ${serviceOrderId}`;
  const last = memberStates.at(-1);
  if (expected === 'waiting') return `${name} waits, because your platform gave no answer: the service asks it again`;
  if (expected !== undefined) {
    const isRight = ticketsAtPos === 0 && last === (expected === 'cancelled' ? expected : undefined);
    return isRight ? undefined : `${name} did not end as ${expected}`;
  }
  if (last === undefined) return `no live message of ${name} arrived`;
  if (last !== memberStateAt(rankOf('completed'), fulfillment)) return `${name} did not get beyond "${last}"`;
  if (sequences.some((sequence, index) => sequence !== index + 1)) {
    return `the live messages of ${name} have the wrong sequence: ${sequences.join(', ')}`;
  }
  if (ticketsAtPos !== 1) return `the POS has ${ticketsAtPos} tickets of ${name}`;
  return undefined;
}
