import { COLUMNS, type ColumnName } from './column-of.ts';
import type { Board } from './create-board.ts';
import type { Ticket } from './ticket-of.ts';

/**
 * Chooses the column that a small screen shows first: the column of an order that needs a person, else the first column
 * with a late order, else the first column that is not empty.
 */
export function columnInNeed(
  { lists, late }: Pick<Board, 'lists' | 'late'>,
  isHidden: (failed: Ticket) => boolean,
): ColumnName {
  const needy = lists.in_doubt[0] ?? lists.held[0] ?? lists.failed.find((ticket) => !isHidden(ticket));
  return (
    needy?.column ??
    COLUMNS.find((column) => late[column] > 0) ??
    COLUMNS.find((column) => lists[column].length > 0) ??
    'placed'
  );
}
