import { COLUMNS, type ColumnName } from './column-of.ts';
import type { Board } from './create-board.ts';
import type { Need } from './needs-of.ts';

/** The columns with an order that is in the list of needs, itself or among the held or late orders of its location. */
export function columnsInNeed({ lists }: Pick<Board, 'lists'>, needs: readonly Need[]): ColumnName[] {
  const ids = new Set<string | null | undefined>(needs.map(({ subject }) => subject?.id));
  return COLUMNS.filter((column) =>
    lists[column].some(
      ({ id, trouble, order }) =>
        ids.has(id) || ((trouble === 'held' || trouble === 'late') && ids.has(order.locationId)),
    ),
  );
}

/**
 * Chooses the column that a small screen shows first: the first with an order that needs a person, else the first with
 * a late order, else the first that is not empty.
 */
export function columnToOpen(
  { lists, late }: Pick<Board, 'lists' | 'late'>,
  inNeed: readonly ColumnName[],
): ColumnName {
  return (
    inNeed[0] ??
    COLUMNS.find((column) => late[column] > 0) ??
    COLUMNS.find((column) => lists[column].length > 0) ??
    'placed'
  );
}
