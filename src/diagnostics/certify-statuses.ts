import type { Status } from '../core/domain/lifecycle.ts';
import type { KitchenOrder } from '../core/domain/order.ts';
import { webhookPath } from '../core/domain/paths.ts';
import type { Location } from '../core/locations/locations.ts';
import { refuseNextStatus } from '../core/test-orders/test-order.ts';
import { findWebhook, readWebhook } from '../core/replay/stored-webhook.ts';
import { awaitStatus, findElsewhere, readStatuses, type Awaited, type Sought } from './await-status.ts';
import { failed, ok, skipped, type Check } from './check.ts';
import { explainInVain } from './explain-in-vain.ts';
import { CHANGED, DUPLICATE, LATE, sendAgain, type Endpoint } from './send-again.ts';
import type { CertifyDeps, CertifyOptions, Progress } from './test-run.ts';

type Run = CertifyOptions & {
  location: Location;
  order: KitchenOrder;
  endpoint: Endpoint;
  since: Date;
  ticketIds: readonly string[];
};

/** What a person does at the till for each status, unless a bridge sends the status automatically. */
const WANTED: Partial<Record<Status, string>> = {
  received: 'confirm the order at the till',
  in_progress: 'begin to prepare it',
  ready: 'mark it as ready',
  en_route: 'send it on its way',
  completed: 'hand it over',
};

/**
 * Waits for each status of the order. Sends webhooks of the POS again while their signatures are recent. Makes the
 * service answer 500 to one webhook of the last status, which the POS must then repeat.
 */
export async function certifyStatuses(deps: CertifyDeps, run: Run, progress: Progress): Promise<void> {
  const { pool } = deps;
  const { order, location, statuses, limits, signal } = run;
  const ours = new Set<string>();
  const sought: Sought = {
    pool,
    keys: deps.keys,
    locationId: run.locationId,
    serviceOrderId: order.serviceOrderId,
    since: run.since,
    ticketIds: run.ticketIds,
    ours,
  };
  const known = new Set<string>();
  const sending = { pool, keys: deps.keys, endpoint: run.endpoint, ours };
  let first: { status: Status; webhookId: string } | undefined;
  let wasLate = false;
  let hasFailed = false;
  let hopeless: string | undefined;

  for (const status of statuses) {
    if (hopeless !== undefined) {
      progress.found(skipped(status, hopeless));
      continue;
    }
    const isLast = status === statuses.at(-1);
    const refusing = isLast && run.repeats ? await refuseOnce(deps, run) : undefined;
    const began = performance.now();
    progress.wants(
      `${status}: ${WANTED[status] ?? 'send it'}, unless that happens automatically (up to ${limits.statusMs / 1000} s)`,
    );
    let awaited: Awaited;
    try {
      awaited = await awaitStatus(sought, status, {
        until: () => (refusing?.refusedAt() ?? began) + limits.statusMs,
        graceMs: limits.graceMs,
        known,
        signal,
      });
    } finally {
      await refusing?.end();
    }
    const refusedAt = refusing?.refusedAt();
    // If the status came by polling, the poll's result may be what was refused, so no webhook has to be repeated.
    if (!('came' in awaited) && !('polled' in awaited) && refusedAt !== undefined) {
      progress.found(skipped(status, 'its webhook was answered 500 on purpose: see the next check'));
      progress.found(notRepeated(limits.statusMs));
      continue;
    }
    const described = await describe(status, awaited, run, sought, known);
    if (described.state === 'failed') hasFailed = true;
    progress.found(described);
    if ('came' in awaited) {
      const { webhookId, spilled } = awaited.came;
      if (isLast) {
        const twice = refusedAt !== undefined && (await sendsAllTwice(sought, location, status));
        progress.found(run.repeats ? repeated({ refusedAt, spilled, hasFailed, twice }) : UNTRIED);
      }
      if (first === undefined) {
        first = { status, webhookId };
        progress.found(await sendAgain(sending, webhookId, location, DUPLICATE));
        progress.found(await sendAgain(sending, webhookId, location, CHANGED));
      } else if (!wasLate) {
        wasLate = true;
        progress.found(await sendAgain(sending, first.webhookId, location, LATE));
      }
    } else if ('silent' in awaited) {
      hopeless = `not checked, because ${status} did not come`;
    } else if ('inVain' in awaited && awaited.inVain.outcome !== 'ignored') {
      hopeless = `not checked: it would have the same problem as ${status}`;
    }
  }
}

/** Makes the service answer 500 to the next webhook about the order. `refusedAt` is `performance.now()` of the 500. */
async function refuseOnce(
  { pool }: CertifyDeps,
  { order, signal }: Run,
): Promise<{ refusedAt: () => number | undefined; end(): Promise<void> }> {
  const ending = new AbortController();
  const held = Promise.withResolvers<void>();
  let refusedAt: number | undefined;
  const signals = AbortSignal.any([signal, ending.signal]);
  const holding = refuseNextStatus(pool, order.serviceOrderId, held.resolve, signals).then((wasRefused) => {
    if (wasRefused) refusedAt = performance.now();
  });
  holding.then(held.resolve, held.reject);
  await held.promise;
  return {
    refusedAt: () => refusedAt,
    async end() {
      ending.abort();
      await holding;
    },
  };
}

async function describe(
  status: Status,
  awaited: Awaited,
  run: Run,
  sought: Sought,
  known: ReadonlySet<string>,
): Promise<Check> {
  if ('came' in awaited) return ok(status, `came as ${awaited.came.nativeStatus}, answered 200 applied`);
  const expected = `a webhook with status ${status} of ${run.order.serviceOrderId}, answered 200 applied`;
  const wrong = (found: string, toDo: string): Check => failed(status, found, toDo, { expected });
  if ('inVain' in awaited) return explainInVain(status, expected, awaited.inVain, run.location);
  if ('polled' in awaited) {
    return wrong(
      `no webhook reported it: the service had to poll the POS, which reported ${awaited.polled.nativeStatus}`,
      'check that the POS still has our webhook URL, and which answers its webhooks got',
    );
  }
  if ('behind' in awaited) {
    const before = awaited.first === undefined ? 'a later one' : awaited.first.nativeStatus;
    const found = `${awaited.behind.nativeStatus} came after ${before}: the member was never notified`;
    const toDo = 'send statuses in order, each after the previous one was answered 200';
    return failed(status, found, toDo, { expected: `${expected}, before any later status` });
  }
  if ('skippedFor' in awaited) {
    return wrong(
      `it never came, but ${awaited.skippedFor.nativeStatus} did: the member was never notified`,
      `send this status; if the POS does not have it, add: --without ${status}`,
    );
  }
  if (known.size > 0) {
    const found = 'no webhook with this status came; earlier webhooks about the order changed nothing';
    return wrong(found, 'first fix the problems above');
  }
  const elsewhere = await findElsewhere(sought);
  if (elsewhere !== undefined) {
    return wrong(
      `a webhook about the order came to the location "${elsewhere}", with its URL and token`,
      `give each restaurant its own webhook URL: expediter token issue --location ${run.locationId}`,
    );
  }
  const { endpoint } = run;
  return wrong(
    `no webhook about the order came to ${endpoint.publicUrl}${webhookPath(endpoint)} with a valid token`,
    'check the answer to your request: 401 means a wrong or incomplete token in the URL; no answer means that it did ' +
      `not reach the service. If this POS does not have the status: --without ${status}`,
  );
}

const REPEATED = 'after a 500';
const UNTRIED = skipped(
  REPEATED,
  'this POS does not repeat webhooks: those sent while Postgres is unavailable are lost',
);

function notRepeated(waitedMs: number): Check {
  return failed(
    REPEATED,
    `a webhook was answered 500, and did not come again within ${waitedMs / 1000} s`,
    'store a status until it is answered 200, and send it again after 5 s, 30 s, 5 min and so on; if the POS cannot: --without repeats',
    { expected: 'the same webhook again, after some seconds, until it is answered 200' },
  );
}

function repeated(about: {
  refusedAt: number | undefined;
  spilled: boolean;
  hasFailed: boolean;
  twice: boolean;
}): Check {
  const { refusedAt, spilled, hasFailed, twice } = about;
  if (refusedAt === undefined) {
    return skipped(
      REPEATED,
      hasFailed
        ? 'no status was left that could be answered 500; fix the problems above and run certify again'
        : 'no webhook could be answered 500: all came at the same time',
    );
  }
  if (spilled) return skipped(REPEATED, 'no webhook was answered 500, because Pub/Sub stored it (SPILL_TOPIC)');
  if (twice) {
    return failed(
      REPEATED,
      'each status came as two webhooks with different ids, so it is unknown whether the refused webhook was repeated',
      'make the id of a webhook once, store it with the status, and check whether there are two tickets',
      { expected: 'one webhook for each status, and the same webhook-id whenever it is sent again' },
    );
  }
  const seconds = Math.round((performance.now() - refusedAt) / 1000);
  return ok(REPEATED, `answered 500, it came again, and was applied ${seconds} s later`);
}

/**
 * Whether every status before the last came in several webhooks with different ids. Then the webhook after the 500 may
 * be no repeat. If only some statuses did, a person may have pressed twice. Always false for a POS not built for us.
 */
async function sendsAllTwice(sought: Sought, { provider }: Location, last: Status): Promise<boolean> {
  const { idHeader } = provider.builtForUs ?? {};
  if (idHeader === undefined) return false;
  const ids = new Map<Status, Set<string | undefined>>();
  for (const { status, webhookId, polled } of await readStatuses(sought.pool, sought.serviceOrderId)) {
    if (polled || status === last || sought.ours.has(webhookId)) continue;
    const key = await findWebhook(sought.pool, webhookId);
    const id = (key && (await readWebhook(sought, key)))?.headers[idHeader];
    ids.set(status, (ids.get(status) ?? new Set()).add(id));
  }
  return ids.size > 0 && [...ids.values()].every((each) => each.size > 1);
}
