import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { Badge } from '../parts/badge.tsx';
import { tenSeconds } from '../parts/clock.ts';
import { knownLocations, locationName, vendorName } from '../parts/names.ts';
import { Page } from '../parts/page.tsx';
import { Time } from '../parts/time.tsx';
import { useNarrow } from '../parts/use-narrow.ts';
import { useFilters } from '../parts/use-filters.ts';
import './board.css';
import { columnsInNeed, columnToOpen } from './column-in-need.ts';
import { COLUMNS, COLUMN_NAMES, type ColumnName } from './column-of.ts';
import { Column, columnInFocus } from './column.tsx';
import { NEEDY, type Filter } from './create-board.ts';
import { Filters } from './filters.tsx';
import { connection, followBoard } from './follow-board.ts';
import { attention, board, draw, follow, isThere } from './live-board.ts';
import { needsOf } from './needs-of.ts';
import { Needs } from './needs.tsx';
import { hasAlerts, turnAlertsOff, turnAlertsOn } from './alerts.ts';

/** Shows the open orders by progress, and everything that needs a person. */
export function BoardPage() {
  const [{ column, wall, ...filter }, change] = useFilters(
    'group',
    'location',
    'integration',
    'text',
    'column',
    'wall',
  );
  const isWall = wall === 'true';
  const isNarrow = useNarrow();
  useEffect(() => followBoard(filter.group), [filter.group]);
  useLayoutEffect(() => {
    board.narrow(filter);
    draw();
  }, [filter.location, filter.integration, filter.text, knownLocations.value]);

  return (
    <div class="board">
      <Page
        title="Board"
        beside={
          <>
            {isWall ? null : isNarrow ? (
              <details class="board-fold">
                <summary>
                  {[filter.group, locationName(filter.location), vendorName(filter.integration), filter.text]
                    .filter(Boolean)
                    .join(', ') || 'Filter'}
                </summary>
                <Filters filter={filter} change={change} />
              </details>
            ) : (
              <Filters filter={filter} change={change} />
            )}
            <Standing />
          </>
        }
      >
        <Needs filter={filter}>
          <Alerts />
          <button type="button" class="quiet" onClick={() => change({ wall: isWall ? '' : 'true' })}>
            {isWall ? 'Menu' : 'Wall display'}
          </button>
        </Needs>
        {isNarrow ? (
          <OneColumn asked={column} filter={filter} choose={(next) => change({ column: (chosen = next) })} />
        ) : (
          // eslint-disable-next-line jsx-a11y/no-static-element-interactions
          <div class="board-columns" onKeyDown={crossColumns}>
            {COLUMNS.map((each) => (
              <Column key={each} column={each} isAlone={false} />
            ))}
          </div>
        )}
      </Page>
    </div>
  );
}

/** The column that was chosen last, for when the reader comes back to the board. */
let chosen: ColumnName | undefined;

/** Whether new needs make a sound and a notification. A browser asks once. */
function Alerts() {
  const isOn = hasAlerts.value;
  return (
    <button
      type="button"
      class="quiet"
      aria-pressed={isOn}
      title="A sound and a notification when something new needs you, while the board is open"
      onClick={() => (isOn ? turnAlertsOff() : void turnAlertsOn())}
    >
      {isOn ? 'Sound is on' : 'Sound for new problems'}
    </button>
  );
}

/** The counts of orders and the state of the connection, which is not `Live` while messages cannot be published. */
function Standing() {
  follow('counts');
  const { open, done, failed } = board.counts;
  const now = connection.value;
  const isUnnotified = (attention.value?.unnotified ?? null) !== null;
  return (
    <p class="row board-standing" translate={false}>
      {isThere.value && (
        <span class="faint">
          {open.toLocaleString('en')} open, {done.toLocaleString('en')} done today
          {failed > 0 && `, ${failed.toLocaleString('en')} failed`}
        </span>
      )}
      {now.state === 'live' && !isUnnotified && <Badge tone="good">Live</Badge>}
      {now.state === 'live' && isUnnotified && <Badge tone="bad">Members not notified</Badge>}
      {now.state === 'live' && now.isTruncated && <Badge tone="warn">Too many orders: only the newest are shown</Badge>}
      {now.state === 'connecting' && <Badge tone="busy">Connecting …</Badge>}
      {now.state === 'lost' && (
        <Badge tone="bad">
          Not live since <Time at={new Date(now.since).toISOString()} />
        </Badge>
      )}
    </p>
  );
}

/** A column on a small screen, and the choice of it. @param about.asked the column that the address names, if any */
function OneColumn({ asked, filter, choose }: { asked: string; filter: Filter; choose: (next: ColumnName) => void }) {
  follow(...COLUMNS, ...NEEDY);
  const needs = needsOf(board.lists, attention.value, filter, tenSeconds.value).flatMap((group) => group.needs);
  const troubled = columnsInNeed(board, needs);
  const opened = useRef(chosen);
  const isEmpty = opened.current === undefined || board.lists[opened.current].length === 0;
  // It stays until the reader chooses another, or it has become empty without the focus.
  if (isEmpty && !columnInFocus() && isThere.value && attention.value) opened.current = columnToOpen(board, troubled);
  const shown = COLUMNS.find((each) => each === asked) ?? opened.current ?? 'placed';
  return (
    <>
      <fieldset class="board-chooser">
        <legend class="unseen">Column</legend>
        {COLUMNS.map((column) => (
          <button key={column} type="button" aria-pressed={column === shown} onClick={() => choose(column)}>
            <b>{board.lists[column].length.toLocaleString('en')}</b> <span>{COLUMN_NAMES[column]}</span>
            {board.late[column] > 0 && <span>{board.late[column].toLocaleString('en')} overdue</span>}
            {troubled.includes(column) && <span class="board-troubled">needs you</span>}
          </button>
        ))}
      </fieldset>
      <div class="board-columns">
        <Column key={shown} column={shown} isAlone />
      </div>
    </>
  );
}

/** Moves the focus to the next column with a ticket, to the left or right. */
function crossColumns(event: KeyboardEvent): void {
  const isLeft = event.key === 'ArrowLeft';
  if ((!isLeft && event.key !== 'ArrowRight') || event.altKey || event.ctrlKey || event.metaKey) return;
  let column = (event.target as HTMLElement).closest('[data-column]');
  while (column !== null) {
    column = isLeft ? column.previousElementSibling : column.nextElementSibling;
    const ticket = column?.querySelector<HTMLElement>('a[tabindex="0"]');
    if (ticket === undefined || ticket === null) continue;
    event.preventDefault();
    ticket.focus();
    return;
  }
}
