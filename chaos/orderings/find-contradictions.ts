import { isDeepStrictEqual } from 'node:util';
import { RANK_CANCELLED, RANK_END, RANK_FAILED, memberStateAt, rankOf } from '../../src/core/domain/lifecycle.ts';
import { cancellationNotified } from '../../src/core/domain/live-message.ts';
import type { Played, Row } from './start-players.ts';
import type { Till } from './scripted-tills.ts';

/** Finds facts that must never hold at the end, whatever happened in which order. Returns a sentence for each. */
export function findContradictions(played: Played): string[] {
  const { row, till, onPlatform, operatorCancels } = played;
  if (row === undefined) return ['it is lost'];
  const isCancelledThere = onPlatform.cancelledAt !== undefined;
  const liveTickets = till.tickets.filter(({ live }) => live).length;
  const byItself = till.told.has('cancelled');
  const isNobodys = !isCancelledThere && operatorCancels === 0;
  const isWithPerson = row.waitsForPerson || row.cancelState === 'by_phone' || row.cancelState === 'refused';
  // A cancel that comes when the order has ended is not recorded and has no effect.
  const wasOver = row.cancelState === null && row.ended;
  const requests = operatorCancels + (isCancelledThere ? 1 : 0);
  const found: [boolean, string][] = [
    [till.tickets.length > 1, `${till.tickets.length} tickets were made`],
    [
      row.begun.some(({ cancellation }) => cancellation !== null),
      'a request for a ticket began after its cancel was committed',
    ],
    [
      liveTickets > 0 && !isNobodys && !isWithPerson && !wasOver && row.rank < RANK_END,
      'the order is to be cancelled, its ticket stays at the POS, and no person is asked to act',
    ],
    [liveTickets > 0 && row.rank === RANK_CANCELLED && !row.conflict, 'it is cancelled, but its ticket is not'],
    [row.state === 'withdrawn' && till.tickets.length > 0, 'it is withdrawn, but has a ticket'],
    [row.state === 'sent' && till.tickets.length === 0, 'it is sent, but has no ticket'],
    [
      !till.kind.deduplicatesCancels && till.mayHaveCancelled > requests,
      `${till.mayHaveCancelled} requests to cancel, of ${requests} allowed`,
    ],
    [isNobodys && row.cancelState !== null, 'nobody cancelled it, but a cancellation is recorded'],
    [isNobodys && !byItself && row.rank === RANK_CANCELLED, 'nobody cancelled it, but it is cancelled'],
    [
      isCancelledThere && till.tickets.length === 0 && !isWithPerson && row.rank < RANK_FAILED,
      'it is to be cancelled and has no ticket, but is not cancelled',
    ],
    [isCancelledThere && row.cancelState === null && !row.ended, 'its cancel on the platform is not recorded'],
    ...told(played, row),
    ...contents(played, row),
  ];
  return found.flatMap(([isSo, what]) => (isSo ? [what] : []));
}

/** Checks the notifications of the order's member. */
function told({ live }: Played, row: Row): [boolean, string][] {
  const last = live.at(-1);
  const sequences = live.map(({ sequence }) => sequence);
  const isOpen = row.cancelState !== null && row.cancelState !== 'refused' && row.cancelState !== 'cancelled';
  return [
    [
      !isDeepStrictEqual(
        sequences,
        live.map((_, nth) => nth + 1),
      ) || row.sequence !== sequences.length,
      `its sequences are ${sequences.join()}, but the last must be ${row.sequence}`,
    ],
    [
      last?.memberState !== memberStateAt(row.rank, 'pickup'),
      `its member was told ${last?.memberState} at rank ${row.rank}`,
    ],
    [
      last?.cancellation !==
        cancellationNotified({ rank: row.rank, cancellation: row.cancellation as 'requested' | null }).cancellation,
      `its member was told ${last?.cancellation} of the cancellation ${row.cancellation}`,
    ],
    [
      !row.ended && (row.cancellation === 'requested') !== isOpen,
      `the order says ${row.cancellation}, its cancellation ${row.cancelState}`,
    ],
    [row.ended && row.cancelIsOpen, 'it has ended, but its cancellation has not'],
  ];
}

/** Checks the sent contents, and whether a difference from the platform's newest contents is recorded for a person. */
function contents({ till, onPlatform, settledAfter }: Played, row: Row): [boolean, string][] {
  const isRepeated = repeatsDiffer(till, settledAfter);
  const [ticket] = till.tickets;
  const differs = ticket !== undefined && ticket.order.notes !== onPlatform.notes;
  const isCompared = row.state === 'sent' && row.cancelState === null && !row.ended;
  return [
    [isRepeated, 'a repeated request had other contents than the first'],
    [
      !isDeepStrictEqual(
        till.sent.map(({ order }) => order.notes),
        row.begun.map(({ notes }) => notes),
      ),
      'the sent contents differ from the stored contents',
    ],
    [
      isCompared && differs !== (row.changes !== null && row.changes.length > 0),
      `the ticket ${differs ? 'differs from' : 'agrees with'} the platform, and the changes are ${JSON.stringify(row.changes)}`,
    ],
  ];
}

/** True if an order that the POS may have taken was sent with other contents before a person settled the doubt. */
function repeatsDiffer({ sent, kind }: Till, settledAfter: readonly number[]): boolean {
  let doubted: object | undefined;
  for (const [nth, { order, fault }] of sent.entries()) {
    if (settledAfter.includes(nth)) doubted = undefined;
    if (doubted !== undefined && !isDeepStrictEqual(doubted, order)) return true;
    const mayBeTaken = fault.how === 'lost' || fault.how === '500' || fault.how === 'died';
    // If the POS does not deduplicate, a repeat is sent only after the doubt is settled, so it may differ.
    doubted = mayBeTaken ? order : kind.deduplicates ? doubted : undefined;
  }
  return false;
}

/**
 * Returns what must be equal after two plays of the same steps in different orders. A change is either on the ticket or
 * recorded as a difference. Which one may depend on the moment, for example if a person says just then that there is no
 * ticket. When a cancel was requested, changes are no longer compared, so a change may be on neither.
 */
export function endOf({ row, till }: Played): object {
  const known = row?.changes?.find(({ path }) => path === 'notes')?.is;
  return {
    rank: row?.rank,
    state: row?.state,
    waitsForPerson: row?.waitsForPerson,
    cancellation: row?.cancellation,
    cancelState: row?.cancelState,
    tickets: till.tickets.map(({ order, live }) => ({
      ...(row?.cancelState === null && { notes: known ?? order.notes }),
      live,
    })),
    cancels: till.mayHaveCancelled,
    isOver: till.rank >= rankOf('completed'),
  };
}
