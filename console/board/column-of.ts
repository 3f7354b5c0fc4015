import type { BoardOrder } from '../wire.ts';

/** Columns from left to right. The board shows orders that ended today, and those that failed in the last day. */
export const COLUMNS = ['placed', 'sent', 'confirmed', 'preparing', 'ready', 'out', 'done', 'failed'] as const;

export type ColumnName = (typeof COLUMNS)[number];

export const COLUMN_NAMES: Record<ColumnName, string> = {
  placed: 'Placed',
  sent: 'Sent',
  confirmed: 'Confirmed',
  preparing: 'Preparing',
  ready: 'Ready',
  out: 'Out',
  done: 'Done today',
  failed: 'Failed',
};

const OF_MEMBER_STATE: Record<NonNullable<BoardOrder['memberState']>, ColumnName> = {
  placed: 'placed',
  sent: 'sent',
  confirmed: 'confirmed',
  preparing: 'preparing',
  ready_for_pickup: 'ready',
  ready_for_delivery: 'ready',
  out_for_delivery: 'out',
  picked_up: 'done',
  delivered: 'done',
  failed: 'failed',
  cancelled: 'done',
};

/** Returns the column. An order that ended without a final status of the POS is in `done`, unless it failed. */
export function columnOf({ endedAt, memberState, placement, fulfillment }: BoardOrder): ColumnName {
  if (placement === 'failed') return 'failed';
  if (endedAt !== null && memberState !== 'failed') return 'done';
  // When an order failed before it was fetched and is retried, its member state is still `failed`.
  return memberState === null || fulfillment === null ? 'placed' : OF_MEMBER_STATE[memberState];
}
