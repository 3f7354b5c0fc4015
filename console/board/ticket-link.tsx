import { now } from '../parts/clock.ts';
import { pageOf } from '../parts/page-of.ts';
import { ShortId } from '../parts/short-id.tsx';
import { showMoney } from '../parts/show-money.ts';
import { age, due, ended } from './due.ts';
import { itemsThatFit, linesOf } from './items-that-fit.ts';
import { known } from './live-board.ts';
import type { Ticket } from './ticket-of.ts';
import { wrongWith } from './wrong-with.ts';

/** Time for which a ticket's move is highlighted, the same as the animation in board.css. */
const MOVED_MS = 2_500;
/** The room below an order's number: lines, and characters of the narrowest column. The same as in board.css. */
const ROOM = { beside: { lines: 4, chars: 18 }, alone: { lines: 3, chars: 44 } };

/** By how many fewer fit when they are bold. */
const BOLD_CHARS = 2;

/**
 * An order on the board: when, which, where, what and how much, and what is wrong. It has a fixed height, so that
 * columns need no measuring, and nothing on it is cut off: what does not fit is counted, or left out as a whole.
 */
export function TicketLink({ ticket, tabIndex, isAlone }: { ticket: Ticket; tabIndex: number; isAlone: boolean }) {
  const at = now.value;
  const { order, id, endedAt } = ticket;
  const { ordered } = order;
  const promise = due(ticket, at);
  const old = age(ticket, at);
  const where = order.locationId ?? 'not fetched yet';
  const wrong = wrongWith(ticket, known.value);
  // A duration is worth showing only for an order that was kept.
  const end = endedAt === null || isKept(order) ? undefined : endOf(ticket);
  const tone = wrong?.needsPerson ? wrong.tone : (promise?.tone ?? 'plain');
  const room = isAlone ? ROOM.alone : ROOM.beside;
  const taken =
    linesOf(where, room.chars) +
    (wrong === undefined ? 0 : linesOf(wrong.words, room.chars - BOLD_CHARS)) +
    (end === undefined ? 0 : 1);
  return (
    <a
      class={`ticket ${tone}${wrong?.needsPerson ? ' trouble' : ''}${at - ticket.movedAt < MOVED_MS ? ' moved' : ''}`}
      href={pageOf.order(id)}
      tabIndex={tabIndex}
      data-ticket={id}
    >
      <b class="ticket-time">{promise?.words ?? end ?? (endedAt === null ? old : `took ${old}`)}</b>{' '}
      <span class="ticket-id">
        {order.callOutCode === null ? (
          <ShortId id={id} />
        ) : (
          <span title={id}>
            {order.callOutCode} <span class="short-id-head">{id}</span>
          </span>
        )}
      </span>{' '}
      {ordered !== null && <span class="ticket-sum">{showMoney(ordered.total, ordered.currency)}</span>}{' '}
      <span class="ticket-body">
        <span class="ticket-where">{where}</span>{' '}
        {wrong !== undefined && <b class={`ticket-wrong ${wrong.tone}`}>{wrong.words}</b>}{' '}
        {ordered !== null && (
          <span class="ticket-items">
            {itemsThatFit(ordered, { ...room, lines: room.lines - taken }).map((item, nth) => (
              <span key={nth}>{item} </span>
            ))}
          </span>
        )}{' '}
        {end !== undefined && <span class="ticket-ended">{ended(ticket, at)}</span>}
      </span>
    </a>
  );
}

/** True if it was picked up or delivered. */
function isKept({ memberState }: Ticket['order']): boolean {
  return memberState === 'picked_up' || memberState === 'delivered';
}

function endOf({ order: { memberState }, column }: Ticket): string {
  return column === 'failed' ? 'failed' : memberState === 'cancelled' ? 'cancelled' : 'no end reported';
}
