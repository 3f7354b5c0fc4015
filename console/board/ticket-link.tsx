import { now } from '../parts/clock.ts';
import { locationName } from '../parts/names.ts';
import { pageOf } from '../parts/page-of.ts';
import { OrderName } from '../parts/order-name.tsx';
import { showMoney } from '../parts/show-money.ts';
import { age, due, ended } from './due.ts';
import { itemsThatFit, linesOf } from './items-that-fit.ts';
import { known } from './live-board.ts';
import type { Ticket } from './ticket-of.ts';
import { wrongWith } from './wrong-with.ts';

/** Time for which a ticket is highlighted after it moved. Must match the animation in board.css. */
const MOVED_MS = 2_500;
/** A line of bold text fits this many fewer characters. */
const BOLD_CHARS = 2;

/**
 * An order on the board. The height is fixed, so that columns need no measuring. Items that do not fit are counted or
 * left out, never cut off.
 * @param about.space below the order number: lines, and characters per line
 */
export function TicketLink({
  ticket,
  tabIndex,
  space,
}: {
  ticket: Ticket;
  tabIndex: number;
  space: { lines: number; chars: number };
}) {
  const at = now.value;
  const { order, id, endedAt } = ticket;
  const { ordered } = order;
  const promise = due(ticket, at);
  const old = age(ticket, at);
  const where = order.locationId === null ? 'not readable yet' : locationName(order.locationId);
  const wrong = wrongWith(ticket, known.value);
  // A duration is shown only for an order that was picked up or delivered.
  const end = endedAt === null || isHandedOver(order) ? undefined : endOf(ticket);
  const tone = wrong?.needsPerson ? wrong.tone : (promise?.tone ?? 'plain');
  const others =
    (wrong === undefined ? 0 : linesOf(wrong.words, space.chars - BOLD_CHARS)) + (end === undefined ? 0 : 1);
  // A long name ends after a word, so that there is a line for an item. The tooltip has it in full.
  const whereLines = Math.max(1, Math.min(linesOf(where, space.chars), space.lines - others - 1));
  return (
    <a
      class={`ticket ${tone}${wrong?.needsPerson ? ' trouble' : ''}${at - ticket.movedAt < MOVED_MS ? ' moved' : ''}`}
      href={pageOf.order(id)}
      tabIndex={tabIndex}
      data-ticket={id}
    >
      <b class="ticket-time">{promise?.words ?? end ?? (endedAt === null ? old : `took ${old}`)}</b>{' '}
      <span class="ticket-id">
        <OrderName id={id} code={order.callOutCode} />
      </span>{' '}
      {ordered !== null && <span class="ticket-sum">{showMoney(ordered.total, ordered.currency)}</span>}{' '}
      <span class="ticket-body">
        <span class="ticket-where" title={where} style={{ WebkitLineClamp: whereLines }}>
          {where}
        </span>{' '}
        {wrong !== undefined && <b class={`ticket-wrong ${wrong.tone}`}>{wrong.words}</b>}{' '}
        {ordered !== null && (
          <span class="ticket-items">
            {itemsThatFit(ordered, { ...space, lines: space.lines - whereLines - others }).map((item, nth) => (
              <span key={nth}>{item} </span>
            ))}
          </span>
        )}{' '}
        {end !== undefined && <span class="ticket-ended">{ended(ticket, at)}</span>}
      </span>
    </a>
  );
}

function isHandedOver({ memberState }: Ticket['order']): boolean {
  return memberState === 'picked_up' || memberState === 'delivered';
}

function endOf({ order: { memberState }, column }: Ticket): string {
  return column === 'failed' ? 'failed' : memberState === 'cancelled' ? 'cancelled' : 'no end reported';
}
