import { now } from '../parts/clock.ts';
import { words } from '../parts/tones.ts';
import { pageOf } from '../parts/page-of.ts';
import { age, due, ended } from './due.ts';
import type { Ticket } from './ticket-of.ts';

/** Time for which a ticket's move is highlighted, the same as the animation in board.css. */
const MOVED_MS = 2_500;

const TROUBLE_TONES = { in_doubt: 'bad', held: 'warn', failed: 'bad' } as const;

/** An order on the board, in four lines of fixed height, so that columns need no measuring. */
export function TicketLink({ ticket, tabIndex }: { ticket: Ticket; tabIndex: number }) {
  const at = now.value;
  const { order, id, trouble, endedAt } = ticket;
  const promise = due(ticket, at);
  const old = age(ticket, at);
  const state = stateOf(ticket);
  // A duration is worth showing only for a done order.
  const isUndone = endedAt !== null && !isKept(order);
  const isStuck = trouble !== null || state === 'waiting';
  const said = isUndone ? undefined : state;
  const tone = trouble === null ? (promise?.tone ?? 'plain') : TROUBLE_TONES[trouble];
  return (
    <a
      class={`ticket ${tone}${trouble === null ? '' : ' trouble'}${at - ticket.movedAt < MOVED_MS ? ' moved' : ''}`}
      href={pageOf.order(id)}
      tabIndex={tabIndex}
      data-ticket={id}
    >
      <b class="ticket-time">{promise?.words ?? (isUndone ? state : endedAt === null ? old : `took ${old}`)}</b>{' '}
      <span class="ticket-id" title={id}>
        {id}
      </span>{' '}
      <span class="ticket-where">
        {order.locationId ?? 'not fetched yet'}
        {order.integration !== null && ` · ${order.integration}`}
      </span>{' '}
      <span class="ticket-line">
        <span class={isStuck ? 'ticket-how stuck' : 'ticket-how'}>
          {said !== undefined && <b>{said}</b>}
          {[said && '', isKept(order) ? null : order.fulfillment, isStuck ? order.problem : order.providerOrderId]
            .filter((each) => each !== null && each !== undefined)
            .join(' · ')}
        </span>{' '}
        {isUndone && <span class="ticket-age">{ended(ticket, at)}</span>}
        {promise !== undefined && <span class="ticket-age">{old}</span>}
      </span>
    </a>
  );
}

/** True if it was picked up or delivered. */
function isKept({ memberState }: Ticket['order']): boolean {
  return memberState === 'picked_up' || memberState === 'delivered';
}

/** The state, if the column does not imply it. */
function stateOf({ order, trouble, column }: Ticket): string | undefined {
  const { placement, memberState } = order;
  if (trouble !== null) return words(trouble);
  if (column === 'done') return memberState !== null && ENDS.has(memberState) ? words(memberState) : 'no end reported';
  if (placement === 'in_doubt') return 'in doubt';
  return placement === 'waiting' && order.problem !== null ? 'waiting' : undefined;
}

const ENDS: ReadonlySet<string> = new Set(['picked_up', 'delivered', 'failed', 'cancelled']);
