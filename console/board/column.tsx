import { useCallback, useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useVirtualRows } from '../parts/use-virtual-rows.ts';
import { COLUMN_NAMES, type ColumnName } from './column-of.ts';
import { board, follow, isThere } from './live-board.ts';
import { TicketLink } from './ticket-link.tsx';

/** Height in pixels of a ticket and the gap below it, and lines below the order number. Must match board.css. */
const ROW = { beside: { height: 123, lines: 4 }, alone: { height: 106, lines: 3 } };
/** Pixels of a letter, and those left and right of a ticket's text. */
const LETTER = 7.2;
const BESIDE = 22;
/** Characters per line in the narrowest column. */
const FEWEST_CHARS = 15;

/**
 * A column of tickets. Arrow keys move the focus. Tab reaches only the current ticket, so this ticket is rendered even
 * when it is scrolled out of view. Has state, so each column needs its own key. @param isAlone true on a small screen
 */
export function Column({ column, isAlone }: { column: ColumnName; isAlone: boolean }) {
  follow(column);
  const headId = useId();
  const scroller = useRef<HTMLDivElement>(null);
  const tickets = board.lists[column];
  const { height: rowHeight, lines } = isAlone ? ROW.alone : ROW.beside;
  const { rows, height, width, scrollTo } = useVirtualRows({
    count: tickets.length,
    rowHeight,
    keyOf: String,
    scroller: useCallback(() => scroller.current, []),
  });

  const [current, setCurrent] = useState<{ id: string; at: number }>();
  const moved = useRef(false);
  const at = placeOf(column, current);
  const currentId = tickets[at]?.id;
  // When the focused ticket leaves the column, the next ticket gets the focus.
  const hadFocus = columnInFocus() === column;

  useLayoutEffect(() => {
    const list = scroller.current;
    const isLost = hadFocus && columnInFocus() !== column;
    if (!isLost && !moved.current) return;
    moved.current = false;
    const next = list?.querySelector<HTMLElement>('[tabindex="0"]') ?? list;
    next?.focus({ preventScroll: true });
    // After a key press, the page scrolls as well, because the column may be out of view.
    if (!isLost) next?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  });
  useEffect(() => {
    if (current !== undefined && currentId !== undefined && (currentId !== current.id || at !== current.at)) {
      setCurrent({ id: currentId, at });
    }
  }, [current, currentId, at]);

  const moveTo = (index: number): void => {
    const ticket = tickets[Math.max(0, Math.min(index, tickets.length - 1))];
    if (ticket === undefined) return;
    moved.current = true;
    setCurrent({ id: ticket.id, at: board.indexOf(column, ticket.id) });
    scrollTo(board.indexOf(column, ticket.id));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const move = MOVES.get(event.key);
    if (move === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    moveTo(move(at, tickets.length, Math.floor((scroller.current?.clientHeight ?? rowHeight) / rowHeight)));
  };

  const space = { lines, chars: Math.max(FEWEST_CHARS, Math.floor((width - BESIDE) / LETTER)) };
  const seen = rows.map(({ index }) => index);
  if (at >= 0 && at < tickets.length && !seen.includes(at)) {
    if (at < (seen[0] ?? 0)) seen.unshift(at);
    else seen.push(at);
  }
  const late = board.late[column];
  return (
    <section
      class={`board-column${tickets.length === 0 ? ' empty' : ''}`}
      aria-labelledby={headId}
      data-column={column}
    >
      <h2 id={headId} class="board-head">
        <span>{COLUMN_NAMES[column]}</span>{' '}
        <span class="board-count" translate={false}>
          {isThere.value && tickets.length.toLocaleString('en')}
        </span>
        {late > 0 && (
          <span class="board-late" translate={false}>
            {late.toLocaleString('en')} overdue
          </span>
        )}
      </h2>
      <div
        class="board-scroll"
        ref={scroller}
        tabIndex={-1}
        // On a small screen, the column is as high as its tickets, but at most 80 % of the screen.
        style={isAlone ? { height: `min(${height + EDGES}px, 80dvh)` } : undefined}
      >
        {tickets.length === 0 ? (
          <p class="board-none">{isThere.value ? 'None' : '…'}</p>
        ) : (
          // eslint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
          <ul style={{ height }} onKeyDown={onKeyDown} aria-labelledby={headId}>
            {seen.map((index) => {
              const ticket = tickets[index];
              if (ticket === undefined) return null;
              return (
                <li
                  key={ticket.id}
                  style={{ transform: `translateY(${index * rowHeight}px)` }}
                  aria-posinset={index + 1}
                  aria-setsize={tickets.length}
                  onFocusCapture={() => setCurrent({ id: ticket.id, at: index })}
                >
                  <TicketLink ticket={ticket} tabIndex={index === at ? 0 : -1} space={space} />
                </li>
              );
            })}
          </ul>
        )}
      </div>
    </section>
  );
}

/** Pixels above and below the tickets of a column. */
const EDGES = 12;

const MOVES = new Map(
  Object.entries<(at: number, count: number, page: number) => number>({
    ArrowDown: (at) => at + 1,
    ArrowUp: (at) => at - 1,
    PageDown: (at, _, page) => at + page,
    PageUp: (at, _, page) => at - page,
    Home: () => 0,
    End: (_, count) => count - 1,
  }),
);

export function columnInFocus(): string | null | undefined {
  return document.activeElement?.closest('[data-column]')?.getAttribute('data-column');
}

/** Returns the index of the current ticket. If the ticket has left the column, returns its last index. */
function placeOf(column: ColumnName, current: { id: string; at: number } | undefined): number {
  if (current === undefined) return 0;
  const at = board.indexOf(column, current.id);
  return at >= 0 ? at : Math.max(0, Math.min(current.at, board.lists[column].length - 1));
}
