import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import type { Pool } from 'pg';
import type { Command } from 'commander';
import { Id } from '../core/domain/order.ts';
import { jsonIn } from '../core/domain/json-text.ts';
import { LiveMessage } from '../core/domain/live-message.ts';
import { audited } from '../core/operators/audit.ts';
import { knownFrom, recoverOrders, type Left, type LostOrder } from '../core/orders/recover-orders.ts';
import { failed, ok, warning, type Check } from '../diagnostics/check.ts';
import { isFine, printChecks, sumOf } from '../diagnostics/print-checks.ts';
import { orderIdOf } from '../core/signals/find-order-id.ts';
import { NotDone } from '../core/operators/not-done.ts';
import { readConfigOf } from '../config/config.ts';
import { hasWaiting, readSince } from '../pubsub/read-since.ts';
import { drainOf } from '../pubsub/spill-topic.ts';
import { commandLineActor } from '../terminal/command-line-actor.ts';
import { sections, table, titled } from '../terminal/print.ts';
import { settingsRules, withDatabase } from '../terminal/settings-rules.ts';

export type RecoverOptions = {
  lostFrom?: Date;
  lostUntil?: Date;
  signals?: string;
  live?: string;
  orders?: string;
  new?: true;
  running?: true;
  quiet: number;
};

const VARIABLES = [
  'DATABASE_URL',
  'SETTINGS_KEY',
  'PUBLIC_URL',
  'PROVIDER_MODULES',
  'PLACEMENT_DEADLINE_S',
  'SPILL_TOPIC',
] as const;
/** A signal may be published before its order is recorded, and clocks differ. */
const BEFORE_MS = 10 * 60_000;
/** Orders that are listed for people. JSON has all of them. */
const LISTED = 50;

/** What is left of one order, and what to do about it. */
type Row = { serviceOrderId: string; locationId: string | null; state: string; problem: string; toDo: string };

/** Begins a recovery, or continues one, and says what is left to do. */
export async function recover(options: RecoverOptions, command: Command): Promise<void> {
  const env = readConfigOf(process.env, ...VARIABLES);
  const rules = await settingsRules(env);
  await withDatabase(env.DATABASE_URL, async (pool) => {
    const { lostFrom, began } = await whichRecovery(pool, options);
    if (began === undefined && options.running === undefined && (await isRunning(pool))) {
      throw new NotDone(
        409,
        'The service is running (or a pooler still has its connections). Stop it, then repeat this command. ' +
          'After a failover that nobody noticed at once, use --running.',
      );
    }
    const known = await readKnown(options, lostFrom, began);
    let left: Left | undefined;
    const action = { action: 'recover', subject: lostFrom.toISOString() };
    const work = async (): Promise<string> => {
      const recovered = await recoverOrders(pool, known, {
        rules,
        lostFrom,
        began,
        deadlineS: env.PLACEMENT_DEADLINE_S,
        running: options.running === true,
        by: commandLineActor(),
      });
      ({ left } = recovered);
      return [
        `forgotten ${recovered.forgotten}, ended ${recovered.ended}`,
        `in doubt ${recovered.doubted}`,
        `moved ${recovered.moved}`,
        `replayed ${recovered.replayed}`,
        `left ${left.orders.length}`,
      ].join(', ');
    };
    const did = await audited(pool, commandLineActor(), action, work, (words) => words);
    if (left !== undefined) {
      const findings = [
        ...checksOf(left, known, options.live !== undefined),
        ...(await checkService(pool, env.SPILL_TOPIC)),
      ];
      report(command, { lostFrom, did, named: known.length }, rowsOf(left), findings);
    }
  });
}

/**
 * Chooses the recovery. The time since when data is missing names it. A time between that and its beginning is about the
 * same loss, such as `2h` when the command is repeated.
 * @returns since when data is missing, and when its recovery began, as a text of Postgres; undefined if it begins now
 */
async function whichRecovery(
  pool: Pool,
  { lostFrom, new: isNew }: RecoverOptions,
): Promise<{ lostFrom: Date; began: string | undefined }> {
  const { rows } = await pool.query<{ lostFrom: Date; began: string; beganAt: Date }>(
    `SELECT a.subject::timestamptz AS "lostFrom", min(a.at)::text AS began, min(a.at) AS "beganAt"
     FROM audit a JOIN audit_outcomes o USING (audit_id)
     WHERE a.action = 'recover' AND o.outcome = 'done' GROUP BY 1 ORDER BY min(a.at) DESC`,
  );
  const [last] = rows;
  const same = rows.find((each) => each.lostFrom.getTime() === lostFrom?.getTime());
  const isOfLast = lostFrom === undefined || (last && last.lostFrom <= lostFrom && lostFrom <= last.beganAt);
  const known = same ?? (isOfLast ? last : undefined);
  if (known !== undefined && !isNew) return known;
  if (lostFrom === undefined) throw new NotDone(400, 'To begin, say since when data is missing: --lost-from.');
  // guard: recovery-named
  if ((isNew ? same : last) !== undefined) {
    throw new NotDone(
      409,
      `The last recovery is of what is missing since ${last?.lostFrom.toISOString()}. To continue it, leave out ` +
        '--lost-from. If data was lost again, add --new, with a time that no recovery has.',
    );
  }
  return { lostFrom, began: undefined };
}

/** True if another connection is the service's. This command has only one. */
async function isRunning(pool: Pool): Promise<boolean> {
  const { rows } = await pool.query<{ running: boolean }>(
    `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'expediter' AND pid <> pg_backend_pid()
                      AND datname = current_database()) AS running`,
  );
  return rows[0]?.running === true;
}

/** Reads all orders since the loss. Messages of the service after the recovery began say nothing about the loss. */
async function readKnown(
  { signals, live, orders, quiet, lostUntil }: RecoverOptions,
  lostFrom: Date,
  began: string | undefined,
): Promise<LostOrder[]> {
  if (signals === undefined && orders === undefined) {
    throw new NotDone(400, "Name the platform's signals: --signals, or a file of order ids: --orders.");
  }
  const since = new Date(lostFrom.getTime() - BEFORE_MS);
  const until = new Date(Math.min(Date.parse(began ?? '') || Date.now(), lostUntil?.getTime() ?? Infinity));
  const read = async (subscription: string | undefined): ReturnType<typeof readSince> => {
    if (subscription === undefined) return [];
    const { GOOGLE_CLOUD_PROJECT: project } = readConfigOf(process.env, 'GOOGLE_CLOUD_PROJECT', 'PUBSUB_EMULATOR_HOST');
    if (project === undefined) {
      throw new NotDone(400, `Set GOOGLE_CLOUD_PROJECT: the subscription "${subscription}" is read there.`);
    }
    return readSince({ project, subscription, quietMs: quiet * 1_000 }, { since, until }).catch((error: Error) => {
      throw new NotDone(409, `the subscription "${subscription}" cannot be read: ${error.message}`);
    });
  };
  const [signalled, messages] = await Promise.all([read(signals), read(live)]);
  const ids = orders === undefined ? [] : await readIds(orders);
  return knownFrom({
    listed: ids.map((id) => ({ id, publishedAt: lostFrom })),
    signals: signalled.flatMap((message) => {
      const id = orderIdOf(message);
      return id === undefined ? [] : [{ id, publishedAt: message.publishedAt }];
    }),
    live: messages.flatMap(({ publishedAt, data }) => {
      // Something else may have been published to the topic.
      const message = LiveMessage.safeParse(jsonIn(data.toString())).data;
      return message === undefined ? [] : [{ message, publishedAt }];
    }),
    until,
  });
}

async function readIds(file: string): Promise<string[]> {
  const words = file === '-' ? await text(process.stdin) : await readFile(file, 'utf8');
  const ids = words.split('\n').map((line) => line.trim());
  return ids
    .filter((id) => id !== '')
    .map((id, nth) => {
      const read = Id.safeParse(id).data;
      if (read === undefined) throw new NotDone(400, `--orders: line ${nth + 1} is not an order id`);
      return read;
    });
}

function rowsOf({ orders, behind }: Left): Row[] {
  return [
    ...orders.map(({ serviceOrderId, locationId, state, problem, forOperator, inDoubt }) => ({
      serviceOrderId,
      locationId,
      state,
      problem: problem ?? '',
      toDo: inDoubt
        ? `look at the POS, then: expediter order resolve ${serviceOrderId} --there, or --not-there`
        : forOperator
          ? `expediter order show ${serviceOrderId}`
          : 'wait, and repeat this command',
    })),
    ...behind.map(({ serviceOrderId, locationId, status }) => ({
      serviceOrderId,
      locationId,
      state: 'behind',
      problem: `members saw ${status}`,
      toDo: 'wait, and repeat this command',
    })),
  ];
}

function checksOf(left: Left, known: readonly LostOrder[], readsLive: boolean): Check[] {
  const open = left.orders.length + left.behind.length;
  const highest = Math.max(0, ...known.map((order) => order.highest ?? 0));
  const people = left.orders.filter(({ forOperator }) => forOperator).length;
  return [
    left.floor !== null && left.floor >= highest
      ? ok('sequences', `live messages are numbered above ${left.floor}; the highest that was published is ${highest}`)
      : failed(
          'sequences',
          `${highest} was published, and the floor is ${left.floor ?? 'not raised'}`,
          'a message was published with a number that this database has lost: begin again',
        ),
    known.length === 0
      ? failed('orders', 'no order is named', 'read the right subscription, or a list: --orders')
      : open === 0
        ? ok('orders', `${known.length} named, all settled`)
        : failed('orders', `${known.length} named; ${open} not settled, ${people} need a person`, 'see the list'),
    // With the live messages, every status is known that members were notified of.
    ...(readsLive ? [] : left.silent).map(({ locationId, orders }) =>
      warning(
        locationId,
        `${orders} orders from before, and no news of them since`,
        `wait for polls, or ask the restaurant: expediter order list --open --location ${locationId}`,
      ),
    ),
  ];
}

async function checkService(pool: Pool, spillTopic: string | undefined): Promise<Check[]> {
  const runs = await isRunning(pool);
  const service = runs
    ? ok('service', 'it runs')
    : failed('service', 'it does not run', 'start it with every key that SETTINGS_KEY had, then repeat this command');
  const { GOOGLE_CLOUD_PROJECT: project } = readConfigOf(process.env, 'GOOGLE_CLOUD_PROJECT', 'PUBSUB_EMULATOR_HOST');
  if (spillTopic === undefined || project === undefined) return [service];
  const spill = (await hasWaiting(project, drainOf(spillTopic)))
    ? failed('spill', 'webhooks wait', 'wait until the service has applied them, and repeat this command')
    : ok('spill', 'nothing waits');
  return [service, spill];
}

function report(
  command: Command,
  about: { lostFrom: Date; did: string; named: number },
  orders: readonly Row[],
  findings: readonly Check[],
): void {
  const rows = orders.slice(0, LISTED).map(({ serviceOrderId, locationId, state, problem, toDo }) => ({
    order: serviceOrderId,
    location: locationId,
    state,
    problem,
    'to do': toDo,
  }));
  const more = orders.length > LISTED ? `\nand ${orders.length - LISTED} more: use --json` : '';
  const checks = findings.map(({ state, check, found, toDo }) => ({
    '': state,
    check,
    found: toDo === undefined ? found : `${found}. To do: ${toDo}`,
  }));
  const words = sections(
    `Lost since ${about.lostFrom.toISOString()}: ${about.did}`,
    titled('Not settled', table(rows)) + more,
    table(checks),
    sumOf(findings),
  );
  printChecks(command, findings, { ...about, ok: isFine(findings), orders, findings }, words);
}
