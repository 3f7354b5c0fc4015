import { isDeepStrictEqual } from 'node:util';
import { RANK_CANCELLED, RANK_END, RANK_FAILED, memberStateAt, rankOf } from '../../src/core/domain/lifecycle.ts';
import { cancellationNotified } from '../../src/core/domain/live-message.ts';
import type { Played, Row } from './start-players.ts';
import type { Till } from './scripted-tills.ts';

/** Finds what must not be at the end, whatever happened in which order. Each is a sentence. */
export function findContradictions(played: Played): string[] {
  const { row, till, onPlatform, operatorCancels } = played;
  if (row === undefined) return ['it is lost'];
  const isCancelledThere = onPlatform.cancelledAt !== undefined;
  const liveTickets = till.tickets.filter(({ live }) => live).length;
  const byItself = till.told.has('cancelled');
  const isNobodys = !isCancelledThere && operatorCancels === 0;
  const isWithPerson = row.waitsForPerson || row.cancelState === 'by_phone' || row.cancelState === 'refused';
  // Whoever asks once it is over is told nothing, and asks for nothing.
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
      'a ticket stays at the POS of an order that is to be cancelled, and no person knows',
    ],
    [liveTickets > 0 && row.rank === RANK_CANCELLED && !row.conflict, 'it is cancelled, and its ticket is not'],
    [row.state === 'withdrawn' && till.tickets.length > 0, 'it is withdrawn, and has a ticket'],
    [row.state === 'sent' && till.tickets.length === 0, 'it is sent, and has no ticket'],
    [
      !till.kind.deduplicatesCancels && till.mayHaveCancelled > requests,
      `${till.mayHaveCancelled} requests to cancel, of ${requests} allowed`,
    ],
    [isNobodys && row.cancelState !== null, 'nobody cancelled it, and a cancellation is recorded'],
    [isNobodys && !byItself && row.rank === RANK_CANCELLED, 'nobody cancelled it, and it is cancelled'],
    [
      isCancelledThere && till.tickets.length === 0 && !isWithPerson && row.rank < RANK_FAILED,
      'it is to be cancelled, has no ticket, and is not cancelled',
    ],
    [isCancelledThere && row.cancelState === null && !row.ended, 'it is cancelled on the platform, and nobody saw it'],
    ...told(played, row),
    ...contents(played, row),
  ];
  return found.flatMap(([isSo, what]) => (isSo ? [what] : []));
}

/** What its member was told. */
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
      `its sequences are ${sequences.join()}, and the last is ${row.sequence}`,
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
    [row.ended && row.cancelIsOpen, 'it has ended, and its cancellation has not'],
  ];
}

/** What was sent, and what of the newest was told to a person. */
function contents({ till, onPlatform, settledAfter }: Played, row: Row): [boolean, string][] {
  const isRepeated = repeatsDiffer(till, settledAfter);
  const [ticket] = till.tickets;
  const differs = ticket !== undefined && ticket.order.notes !== onPlatform.notes;
  const isCompared = row.state === 'sent' && row.cancelState === null && !row.ended;
  return [
    [isRepeated, 'what was sent once was repeated otherwise'],
    [
      !isDeepStrictEqual(
        till.sent.map(({ order }) => order.notes),
        row.begun.map(({ notes }) => notes),
      ),
      'not what was stored was sent',
    ],
    [
      isCompared && differs !== (row.changes !== null && row.changes.length > 0),
      `the ticket ${differs ? 'differs from' : 'agrees with'} the platform, and the changes are ${JSON.stringify(row.changes)}`,
    ],
  ];
}

/** Whether an order that may have been taken was sent otherwise, before anybody settled the doubt. */
function repeatsDiffer({ sent, kind }: Till, settledAfter: readonly number[]): boolean {
  let doubted: object | undefined;
  for (const [nth, { order, fault }] of sent.entries()) {
    if (settledAfter.includes(nth)) doubted = undefined;
    if (doubted !== undefined && !isDeepStrictEqual(doubted, order)) return true;
    const mayBeTaken = fault.how === 'lost' || fault.how === '500' || fault.how === 'died';
    // Where the POS does not deduplicate, a repeat begins once the doubt is over.
    doubted = mayBeTaken ? order : kind.deduplicates ? doubted : undefined;
  }
  return false;
}

/**
 * What two plays of the same steps in another order must have in common. A change is on the ticket or known beside it:
 * which of both may be a matter of moments, such as where a person says in the same moment that there is no ticket yet.
 * Once it is to be cancelled nobody looks at what else changed, and it may be on neither.
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
