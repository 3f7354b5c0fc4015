import { COLUMNS, type ColumnName } from './column-of.ts';
import type { Board } from './create-board.ts';

/**
 * The column that a screen with room for one begins with: of an order that needs a person, else of one that is late,
 * else the first with any.
 * @param waitsForLock whether somebody has seen that need
 */
export function columnInNeed(
  { lists, late }: Pick<Board, 'lists' | 'late'>,
  waitsForLock: (key: string) => boolean,
): ColumnName {
  const needy = lists.in_doubt[0] ?? lists.held[0] ?? lists.failed.find(({ id }) => !waitsForLock(`failed:${id}`));
  return (
    needy?.column ??
    COLUMNS.find((column) => late[column] > 0) ??
    COLUMNS.find((column) => lists[column].length > 0) ??
    'placed'
  );
}
