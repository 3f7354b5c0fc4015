import { Option, type Command } from 'commander';
import type { Pool } from 'pg';
import { readConfigOf } from '../config.ts';
import { concludeByPhone } from '../core/cancellations/conclude-by-phone.ts';
import { requestCancellation } from '../core/cancellations/request-cancellation.ts';
import { PLACEMENT_STATES, type PlacementState } from '../core/domain/placement.ts';
import { MEMBER_STATES, STATUSES, type MemberState, type Status } from '../core/domain/lifecycle.ts';
import { raiseSequences } from '../core/live/sequence-floor.ts';
import { listOrders, type ListedOrder, type OrderFilter } from '../core/orders/list-orders.ts';
import { Id, describeIssues } from '../core/domain/order.ts';
import { resolveNotThere, resolveThere } from '../core/placements/resolve-doubt.ts';
import { retryPlacement } from '../core/placements/retry-placement.ts';
import { showOrder, type ShownOrder } from '../core/orders/show-order.ts';
import { audited } from '../core/operators/audit.ts';
import { actsTable } from './acts-table.ts';
import { commandLineActor } from './command-line-actor.ts';
import { examples } from './examples.ts';
import { NotFound, WrongInput } from './failures.ts';
import { facts, print, table, time } from './print.ts';
import { LIST_LIMIT, LIST_LIMIT_MAX, readLimit } from './read-limit.ts';
import { PAST, readPast } from './read-time.ts';
import { withDatabase } from './with-database.ts';

type Filters = {
  location?: string;
  integration?: string;
  state?: PlacementState;
  needsOperator?: true;
  open?: true;
  status?: Status;
  memberState?: MemberState;
  since?: Date;
  until?: Date;
};

export function addOrderCommands(program: Command): void {
  const order = program
    .command('order')
    .description('orders on their way to a POS and back')
    .addHelpText('after', examples('expediter order list --needs-operator', 'expediter order show order-4711'));

  order
    .command('list')
    .description('orders by their first signal, newest first; nothing about their members')
    .option('--location <id>', 'at this location')
    .option('--integration <name>', 'last sent through this integration')
    .addOption(new Option('--state <state>', 'of the placement').choices(PLACEMENT_STATES))
    .option('--needs-operator', 'in doubt until a person says whether the ticket is there')
    .option('--open', 'not ended yet')
    .addOption(new Option('--status <status>', 'as the POS reported last').choices(STATUSES))
    .addOption(new Option('--member-state <state>', 'as the member sees it').choices(MEMBER_STATES))
    .option('--since <when>', `signalled since then: ${PAST}`, readPast)
    .option('--until <when>', `signalled before: ${PAST}`, readPast)
    .option('--limit <count>', `at most so many, up to ${LIST_LIMIT_MAX}`, readLimit, LIST_LIMIT)
    .option('--after <orderId>', 'go on behind this one, the last of the list before')
    .addHelpText(
      'after',
      examples(
        'expediter order list --needs-operator',
        'expediter order list --location club-1 --open --since 3h',
        'expediter order list --state failed --since 2027-01-31T18:00:00Z --json',
      ),
    )
    .action(async (options: Filters & { limit: number; after?: string }, command: Command) => {
      const { DATABASE_URL } = readConfigOf(process.env, 'DATABASE_URL');
      const rows = await withDatabase(DATABASE_URL, (pool) => list(pool, options));
      print(
        command,
        rows,
        rows.length < options.limit
          ? tableOf(rows)
          : `${tableOf(rows)}\n\nthere may be more: --after ${rows.at(-1)?.serviceOrderId}`,
      );
    });

  order
    .command('show')
    .description(
      'what became of an order: placement, attempts, POS ids, history, webhooks, live messages, what operators did; nothing about the member',
    )
    .argument('<id>', 'its id on the ordering platform')
    .addHelpText('after', examples('expediter order show order-4711', 'expediter order show order-4711 --json'))
    .action(async (id: string, _options: object, command: Command) => {
      const { DATABASE_URL } = readConfigOf(process.env, 'DATABASE_URL');
      const shown = await withDatabase(DATABASE_URL, (pool) => showOrder(pool, id));
      if (shown === undefined) throw noSuchOrder(id);
      print(command, shown, inWords(shown));
    });

  order
    .command('retry')
    .description('try a placement now; one that failed is final, unless it was never read')
    .argument('<id>', 'its id on the ordering platform')
    .addHelpText('after', examples('expediter order retry order-4711'))
    .action(async (id: string, _options: object, command: Command) => {
      const { DATABASE_URL } = readConfigOf(process.env, 'DATABASE_URL');
      const retried = await withDatabase(DATABASE_URL, (pool) =>
        act(pool, 'retry', id, () => retryPlacement(pool, id)),
      );
      if (retried === undefined) throw noSuchOrder(id);
      if ('refused' in retried) throw new Error(`${id}: ${retried.refused}`);
      const words = retried.retry === 'due' ? 'is due now' : 'is being tried this moment';
      print(command, retried, `${id} ${words}; see: expediter order show ${id}`);
    });

  order
    .command('resolve')
    .description('say what you saw at the POS about an order in doubt: the ticket is there, or it is not')
    .argument('<id>', 'its id on the ordering platform')
    .addOption(new Option('--there', 'the POS has the ticket').conflicts('notThere'))
    .addOption(new Option('--pos-id <id>', "the ticket's id at the POS, with --there").conflicts('notThere'))
    .addOption(new Option('--not-there', 'the POS has no such ticket: it is sent again'))
    .addHelpText(
      'after',
      examples(
        'expediter order resolve order-4711 --there --pos-id 8F2K',
        'expediter order resolve order-4711 --there',
        'expediter order resolve order-4711 --not-there',
      ),
    )
    .action(async (id: string, options: { there?: true; posId?: string; notThere?: true }, command: Command) => {
      if (!options.there && !options.notThere) {
        throw new WrongInput('say what you saw: --there (with --pos-id, where you know it) or --not-there');
      }
      await (options.there ? there(id, options.posId, command) : notThere(id, command));
    });

  order
    .command('cancel')
    .description('have an order cancelled at its POS, or say what the restaurant said on the telephone about that')
    .argument('<id>', 'its id on the ordering platform')
    .addOption(
      new Option('--by-phone <said>', 'what the restaurant said; the POS is not asked').choices([
        'cancelled',
        'refused',
      ]),
    )
    .addHelpText(
      'after',
      examples('expediter order cancel order-4711', 'expediter order cancel order-4711 --by-phone cancelled'),
    )
    .action(async (id: string, { byPhone }: { byPhone?: 'cancelled' | 'refused' }, command: Command) => {
      await (byPhone === undefined ? cancel(id, command) : conclude(id, byPhone === 'cancelled', command));
    });

  order
    .command('renumber')
    .description('number the live messages of all orders above all that readers have seen; after a restore')
    .addHelpText(
      'after',
      `
A restored database, or one whose failover lost commits, would use numbers again that readers have seen, and they would
drop those messages as repeats. Run it before the service starts, or beside it as soon as you know. It takes no time and
changes no message that is there. Twice does no harm. Reads DATABASE_URL.
${examples('expediter order renumber')}`,
    )
    .action(renumber);
}

async function there(id: string, posId: string | undefined, command: Command): Promise<void> {
  const providerOrderId = Id.optional().safeParse(posId);
  if (!providerOrderId.success) throw new WrongInput(`--pos-id: ${describeIssues(providerOrderId.error)}`);
  const env = readConfigOf(process.env, 'DATABASE_URL');
  const resolved = await withDatabase(env.DATABASE_URL, (pool) =>
    act(pool, 'resolve', id, () => resolveThere(pool, id, { providerOrderId: providerOrderId.data })),
  );
  if (resolved === undefined) throw noSuchOrder(id);
  if ('refused' in resolved) throw new Error(`${id}: ${resolved.refused}`);
  print(
    command,
    resolved,
    `${id} is sent${resolved.redriven > 0 ? `; ${resolved.redriven} events that waited for it went on` : ''}`,
  );
}

async function cancel(id: string, command: Command): Promise<void> {
  const { DATABASE_URL } = readConfigOf(process.env, 'DATABASE_URL');
  const requested = await withDatabase(DATABASE_URL, (pool) =>
    act(pool, 'cancel', id, () => requestCancellation(pool, id)),
  );
  if (requested === undefined) throw noSuchOrder(id);
  if ('refused' in requested) throw new Error(`${id}: ${requested.refused}`);
  const words = {
    withdraws: 'is withdrawn, and not sent',
    asks_pos: 'is to be cancelled, and its POS is asked',
    under_way: 'is being cancelled this moment',
  };
  print(command, requested, `${id} ${words[requested.cancel]}; see: expediter order show ${id}`);
}

async function conclude(id: string, cancelled: boolean, command: Command): Promise<void> {
  const { DATABASE_URL } = readConfigOf(process.env, 'DATABASE_URL');
  const concluded = await withDatabase(DATABASE_URL, (pool) =>
    act(pool, 'conclude cancel', id, () => concludeByPhone(pool, id, cancelled)),
  );
  if (concluded === undefined) throw noSuchOrder(id);
  if ('refused' in concluded) throw new Error(`${id}: ${concluded.refused}`);
  print(command, concluded, cancelled ? `${id} is cancelled, and its member is told` : `${id} goes on`);
}

async function renumber(_options: object, command: Command): Promise<void> {
  const { DATABASE_URL } = readConfigOf(process.env, 'DATABASE_URL');
  const floor = await withDatabase(DATABASE_URL, (pool) =>
    audited(pool, commandLineActor(), { did: 'renumber' }, () => raiseSequences(pool), String),
  );
  print(command, { floor }, `live messages are numbered above ${floor} from now on`);
}

async function notThere(id: string, command: Command): Promise<void> {
  const { DATABASE_URL } = readConfigOf(process.env, 'DATABASE_URL');
  const resolved = await withDatabase(DATABASE_URL, (pool) =>
    act(pool, 'resolve', id, () => resolveNotThere(pool, id)),
  );
  if (resolved === undefined) throw noSuchOrder(id);
  if ('refused' in resolved) throw new Error(`${id}: ${resolved.refused}`);
  print(
    command,
    resolved,
    resolved.state === 'withdrawn'
      ? `${id} is withdrawn, as it was to be cancelled`
      : resolved.late
        ? `${id} is past its deadline: it fails now, and its member is told`
        : `${id} is due now; see: expediter order show ${id}`,
  );
}

/** Does something about an order as an act of whoever runs the command. */
function act<Result>(pool: Pool, did: string, serviceOrderId: string, work: () => Promise<Result>): Promise<Result> {
  return audited(pool, commandLineActor(), { did, serviceOrderId }, work);
}

async function list(
  pool: Pool,
  { location, limit, after, ...filters }: Filters & { limit: number; after?: string },
): Promise<ListedOrder[]> {
  const filter: OrderFilter = { ...filters, locations: location === undefined ? undefined : [location] };
  const found: ListedOrder[] = [];
  let behind: string | undefined = after;
  for (;;) {
    const page = await listOrders(pool, filter, { after: behind, limit: limit - found.length });
    if (page === undefined) throw noSuchOrder(behind ?? '');
    found.push(...page.orders);
    if (page.next === null || found.length === limit) return found;
    behind = page.next;
  }
}

function noSuchOrder(id: string): NotFound {
  return new NotFound(`no signal ever named the order "${id}"`);
}

function tableOf(rows: readonly ListedOrder[]): string {
  return table(
    rows.map((row) => ({
      order: row.serviceOrderId,
      signalled: time(row.signalledAt),
      location: row.locationId,
      integration: row.integration,
      placement: row.needsOperator ? 'in doubt: needs you' : row.placement.replace('_', ' '),
      'member sees': row.memberState,
      cancel: row.cancellation,
      status: row.status,
      'POS id': row.providerOrderId,
      ended: time(row.endedAt),
      problem: row.problem,
    })),
    'no orders match',
  );
}

function inWords(shown: ShownOrder): string {
  const { serviceOrderId, placement, order } = shown;
  const asks = placement.state === 'in_doubt' && placement.nextAttemptAt === null;
  const parts = [
    facts({
      order: serviceOrderId,
      location: order?.locationId ?? placement.locationId,
      integration: order?.integration,
      fulfillment: order?.fulfillment,
      'call-out code': order?.callOutCode,
      status: order?.status,
      reason: order?.reason,
      'reason code': order?.reasonCode,
      items: order?.itemIds?.join(', '),
      'estimated ready': time(order?.estimatedReadyAt ?? null),
      'estimated delivery': time(order?.estimatedDeliveryAt ?? null),
      'left out': order?.leftOut.map(({ code, path }) => `${path} (${code.replaceAll('_', ' ')})`).join(', '),
      told: shown.told,
      cancel: cancelInWords(shown.cancellation),
      'changed since': [...new Set(shown.changes.flatMap(({ paths }) => paths))].join(', '),
      member: shown.memberWatching ? 'is watching' : '',
      ended: time(order?.endedAt ?? null),
      erased: time(order?.erasedAt ?? null),
      placement: placement.state.replace('_', ' '),
      problem: placement.problem,
      'under way': placement.underWay ? 'a worker has it this moment' : '',
      signalled: time(placement.signalledAt),
      deadline: placement.finishedAt === null ? time(placement.deadlineAt) : '',
      'next try': asks
        ? `none: expediter order resolve ${serviceOrderId} --there | --not-there`
        : time(placement.nextAttemptAt),
      finished: time(placement.finishedAt),
      'POS ids': shown.posIds.map((each) => each.providerOrderId).join(', '),
    }),
    titled(
      'Attempts',
      shown.attempts.map((each) => ({
        attempt: each.attempt,
        call: each.call,
        started: time(each.startedAt),
        ms: each.milliseconds,
        outcome: each.outcome,
        http: each.httpStatus,
        error: each.error,
        code: each.reasonCode,
      })),
    ),
    titled(
      'History',
      shown.history.map((each) => ({
        recorded: time(each.recordedAt),
        status: each.status,
        'at the POS': each.nativeStatus,
        outcome: each.conflict ? `${each.outcome}, conflict` : each.outcome,
        sequence: each.sequence,
        reason: each.reason,
        code: each.reasonCode,
        ready: time(each.estimatedReadyAt),
        delivery: time(each.estimatedDeliveryAt),
        webhook: each.webhookId,
      })),
    ),
    titled(
      'Webhooks',
      shown.webhooks.map((each) => ({
        webhook: each.webhookId,
        received: time(each.receivedAt),
        outcome: each.outcome,
        'replay of': each.replayOf,
        why: each.asked ? 'nobody sent it: the POS was asked' : each.reason,
      })),
    ),
    titled(
      'Live messages',
      shown.live.map((each) => ({
        sequence: each.sequence,
        'member sees': each.memberState,
        applied: time(each.appliedAt),
        published: each.publishedAt === null ? `not yet, after ${each.attempts} attempts` : time(each.publishedAt),
      })),
    ),
    shown.acts.length === 0 ? '' : `What operators did\n${actsTable(shown.acts)}`,
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function cancelInWords(cancellation: ShownOrder['cancellation']): string {
  if (cancellation === null) return '';
  const { state, askedBy, requestedAt, problem } = cancellation;
  const asked = `${state.replace('_', ' ')}, asked for by the ${askedBy} at ${time(requestedAt)}`;
  return problem === null ? asked : `${asked}: ${problem}`;
}

function titled(title: string, rows: Parameters<typeof table>[0]): string {
  return rows.length === 0 ? '' : `${title}\n${table(rows, '')}`;
}
