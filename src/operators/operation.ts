import { NotDone } from '../core/operators/not-done.ts';
import type { Pool } from 'pg';
import { z } from 'zod';
import type { Action, Author } from '../core/operators/audit.ts';
import type { Observe } from '../core/domain/observed.ts';
import type { Registry } from '../core/domain/provider.ts';
import type { ShapeIssue } from '../core/domain/shape-issues.ts';
import type { MayPlace, NeededRole, Scope } from '../core/operators/operator.ts';
import type { RetranslateDeps } from '../core/replay/retranslate.ts';
import type { LocationDeps } from '../core/locations/check-location.ts';
import { GiveUp, NeedsOperator, TryAgain } from '../core/domain/errors.ts';
import { WrongLocation, inSettings } from '../core/locations/locations.ts';
import { WAYS, type Ways } from '../core/notices/ways.ts';
import { findPastOrder, findTombstone } from '../core/retention/past-orders.ts';
import type { Now } from '../core/postgres/database-clock.ts';
import type { DatabaseState } from '../core/postgres/watch-database.ts';
import type { SpillState } from '../core/spill/spill-webhook.ts';
import type { Config } from '../config/config.ts';

/** The role that a route needs, and what the audit records about the route. */
export type Access = {
  role: NeededRole;
  /**
   * At which locations the caller needs the role:
   *
   * - `order`, `webhook`, `location`: at the location of the subject in the path. A caller with no role there gets 404
   * - `list`: at one location or more. The route leaves out all other locations with `within`
   * - `new`: like `location`, if it exists. If not, the groups in the body decide: see `Caller.mayPlace`. The answer does
   *   not tell a caller with no role there whether the location exists
   * - `given`: at each location in the body's `locations` and each group in its `locationGroups`, or at all locations if
   *   the body has neither
   * - `all`: at all locations
   * - `none`: at one location or more
   */
  of: 'order' | 'webhook' | 'location' | 'new' | 'list' | 'given' | 'all' | 'none';
  /** True if the route sends no query to Postgres: cached permissions are enough while Postgres is unavailable. */
  whileAway?: true;
  /** The action's name in the audit. Every operation that changes something has one. */
  does?: string;
  /** True for a POST that changes nothing: its text may be about a member, so it must not be in a URL. */
  onlyReads?: true;
  /**
   * Set if the answer may contain member data. If `when` returns true, the caller also needs the role `member-data`,
   * and the audit records `action`. `when` gets the query before validation (texts) and after it (booleans).
   */
  reveals?: { action: string; when: (query: Readonly<Record<string, unknown>>) => boolean };
};

/** Variables that are needed to read settings. They must be the same as the service's. */
export const SETTINGS = ['SETTINGS_KEY', 'PROVIDER_MODULES', 'PUBLIC_URL'] as const;
export const POS = [...SETTINGS, 'ALLOW_PRIVATE_HOSTS'] as const;
export const NOTIFY = [...WAYS, 'ALLOW_PRIVATE_HOSTS'] as const;
/** The refusal if PUBLIC_URL is unset, before a token is made. */
export const NO_PUBLIC_URL =
  'PUBLIC_URL is not set, so no POS can call this service. Example: https://expediter.example.com';
export type Settings = Omit<RetranslateDeps, 'pool'> & { registry: Registry };

/** The caller of an operation, and the operation's dependencies. The type is the same for requests and commands. */
export type Caller = {
  pool: Pool;
  by: Author;
  /** The headers that the operation takes and the request has. A command has none. */
  headers: { readonly [name in keyof typeof HEADERS]?: string };
  /** Returns the locations that the answer may cover; undefined means all locations. */
  within(requested?: string): readonly string[] | undefined;
  scope(): Scope;
  /** Whether the caller may create a location with these groups (`before` is undefined), or change its groups. */
  mayPlace: MayPlace;
  /** Whether the caller has a role at a location. @param groups the location's groups, if they were read */
  hasAt(role: NeededRole, locationId: string, groups?: readonly string[]): boolean;
  /** Sets `after` of the audit's action. By default `after` is the state of the order or location. */
  note(after: string): void;
  /** Only for an operation with `reads: SETTINGS`. Other commands do not load them, so that they start faster. */
  settings: Settings;
  /** Only for an operation with `reads: POS`. */
  pos: LocationDeps;
  /** How contacts of restaurants are told. Only for an operation with `reads: NOTIFY`. */
  ways: Ways;
  /** The variables that the operation reads. Unset variables are missing. */
  config: Partial<Config>;
  /** Undefined in a command. */
  service?: {
    /** `invalidateCache` must be called after permissions changed. */
    identify: { invalidateCache(): void };
    now: Now;
    env: NodeJS.ProcessEnv;
    isForwarded(): boolean;
    readiness(): { database: DatabaseState };
    spillState(): SpillState;
  };
  /** Reports progress. Only for an operation with `streams`. */
  tell: Tell;
  /** Aborts at the end of a drain. With `streams`, also if the client disconnects or the user stops the command. */
  stopped: AbortSignal;
  /** True if nobody needs the answer any more: the client has disconnected, or the process stops. */
  isOver(): boolean;
  /** Logs an event of the service. A command logs nothing. */
  observe: Observe;
  /** Wakes the workers of this process. It does nothing in a command, because Postgres notifies the workers. */
  wake(): void;
  /** Makes the board of this process read what needs a person at once. It does nothing in a command. */
  wakeBoard(): void;
};

/** Receives the progress of an operation: an event's name and its data. */
export type Tell = (event: string, data: object) => void;

/** An option of a command: its flags, its help text, and how its value is parsed. */
export type CommandOption = {
  flags: string;
  about: string;
  required?: true;
  choices?: readonly string[];
  /** `past`: a time, or a duration ago. `limit`: a number of rows. A function gets the text and the previous value. */
  read?: 'past' | 'limit' | ((text: string, before?: string[]) => unknown);
  conflicts?: string;
};
export type Options = Readonly<Record<string, unknown>>;

export type CommandAbout = {
  /** The group and the name of the command, such as `order show`. */
  name: string;
  about: string;
  /**
   * The argument's flags, its help text, and the input field that it sets. By default it is the path parameter. False if
   * an option sets that.
   */
  argument?: { flags: string; about: string; field: string } | false;
  options?: readonly CommandOption[];
  /** Finds path parameters of the route that the user did not type, by another operation. */
  complete?: {
    by: Operation;
    /**
     * @returns the complete input; or a sentence that says why they were not found. It must not quote the typed text,
     *   which may be a secret
     */
    find(ask: Ask, typed: Options): Promise<Options | string>;
  };
  /** Words between the subject and the reason of a refusal, such as `cannot be removed`. */
  cannot?: string;
  /** Help text below the options. */
  more?: string;
  examples: readonly string[];
  /**
   * Converts the typed argument and options to the input of the operation. Without this function, the options must have
   * the names of the input's fields.
   * @returns the input; or another operation and its input, if the options select another operation
   * @throws NotDone
   */
  read?(typed: Options): Typed | Promise<Typed>;
  /** Prints the progress of an operation with `streams`. */
  tell?: Tell;
  /** How many connections the operation uses at the same time in a command. By default one. */
  connections?: number;
  /** The output field with the rows of a list. `--json` prints only these rows, of all pages. */
  rows?: string;
};
type Typed = Options | { operation: Operation; input: Options };

/** Request headers that an operation may take. An output field `etag` becomes the header ETag. */
export const HEADERS = {
  ifMatch: {
    header: 'if-match',
    schema: z
      .string()
      .max(500)
      .regex(/^\s*(\*|"[\w-]{1,64}"(\s*,\s*"[\w-]{1,64}")*)\s*$/, { error: 'is not the ETag of an earlier answer' })
      .optional()
      .describe('The ETag of an earlier answer. If the location has changed since then, the answer is 412.'),
  },
  ifNoneMatch: {
    header: 'if-none-match',
    schema: z
      .literal('*', { error: 'must be *' })
      .optional()
      .describe('`*`: only create the location. If it exists, the answer is 412.'),
  },
  idempotencyKey: {
    header: 'idempotency-key',
    schema: z
      .string()
      .regex(/^[\x21-\x7e]{8,255}$/, { error: 'is not 8 to 255 visible ASCII characters' })
      .optional()
      .describe('A text of your choice, such as a UUID. The same request with the same key has the same answer.'),
  },
} as const;

/** The input of an operation: path, query and body in one object. A part without a schema adds nothing. */
type InputOf<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType> = z.output<Params> &
  z.output<Query> &
  z.output<Body>;
type Refusal = { refused: string; statusCode?: NotDone['statusCode']; cause?: unknown };
type Done<Result> = Exclude<Result, Refusal | undefined>;

/** The part of an operation that only the API needs. */
type Api<Output> = {
  /** Method and path in Fastify's form, without the prefix of the API. */
  route: `${'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} /${string}`;
  summary: string;
  description: string;
  output: Output;
  /** A sentence that describes the output. */
  answer: string;
  /** Statuses of refusals. 409: the current state does not allow the operation. */
  refuses?: readonly (409 | 412 | 422)[];
  /** True if the operation may create its subject, which is then answered 201. Its output has `created`. */
  creates?: true;
  /**
   * Set if the operation takes minutes: the answer is a stream of server-sent events. The description of the events of
   * its progress. The last event is `done` with the output, or `failed` with a problem.
   */
  streams?: string | undefined;
  /** Set if the body may be larger than 64 KiB: the maximum in bytes. */
  bodyLimit?: number;
};

/** @returns the description for readers of the API, including the stream if the operation has one */
export function describeApi({ description, streams }: Pick<Api<unknown>, 'description' | 'streams'>): string {
  if (streams === undefined) return description;
  return (
    `${description} The answer is a stream of server-sent events. ${streams} The last event is \`done\` with the output, ` +
    'or `failed` with a problem.'
  );
}

type About<Params, Query, Body, Input, Result> = {
  id: string;
  access: Access;
  params?: Params;
  query?: Query;
  body?: Body;
  /** Headers that a request may have: see `Caller.headers`. */
  takes?: readonly (keyof typeof HEADERS)[];
  /** The message if the subject does not exist. By default it is taken from `noSuch`. */
  missing?: string;
  /** Variables that a command needs in addition to DATABASE_URL. */
  reads?: readonly (keyof Config)[];
  /** True if the operation creates work for the workers, which are then woken, as the board is. `board`: only the board. */
  wakes?: true | 'board';
  /** @returns the output, or a refusal, or undefined if the subject does not exist */
  run(caller: Caller, input: Input): Promise<Result>;
  /** Describes the output for people. */
  print?(done: Done<Result>, input: Input): string | Promise<string>;
  /** Makes a command exit 1 after its output. @returns a message; true if the output says why; false for exit 0 */
  fails?(done: Done<Result>, input: Input): string | boolean;
  /** Returns further fields of the action in the audit. */
  about?(caller: Caller, input: Input): Promise<Partial<Action>>;
  /** Joins the outputs of a run that the API does in parts: each output but the last has a `next`. */
  join?(parts: readonly object[]): object;
  command?: CommandAbout;
};

/** An operation of operators, defined once for the API and the command line. Some have no command. */
export type Operation = About<z.ZodObject, z.ZodObject, z.ZodType, Options, unknown> & { api: Api<z.ZodType> };

export function operation<
  Output extends z.ZodType,
  Result extends z.output<Output> | Refusal | undefined,
  Params extends z.ZodType = z.ZodUnknown,
  Query extends z.ZodType = z.ZodUnknown,
  Body extends z.ZodType = z.ZodUnknown,
>(about: About<Params, Query, Body, InputOf<Params, Query, Body>, Result> & { api: Api<Output> }): Operation {
  return about as unknown as Operation;
}

/** Performs an operation, in the database or by the API of a service. @throws NotDone, PartlyDone */
export type Ask = (operation: Operation, input: Options, tell?: Tell) => Promise<object>;

/** Makes an error handler that turns an error of a POS into a refusal. @param what for people, such as "No link" */
export const refusing =
  (what: string) =>
  (error: unknown): never => {
    if (!(error instanceof TryAgain || error instanceof NeedsOperator || error instanceof GiveUp)) throw error;
    throw new NotDone(409, `${what}: ${error.message}`);
  };

/** Ends the wait for work that the drain need not wait for. */
export async function unlessDrained<Result>(work: Promise<Result>, closing: AbortSignal): Promise<Result> {
  const stopped = Promise.withResolvers<never>();
  const stop = (): void =>
    stopped.reject(Object.assign(new Error('This process is stopping. Try again.'), { statusCode: 503 }));
  closing.addEventListener('abort', stop);
  if (closing.aborted) stop();
  try {
    return await Promise.race([work, stopped.promise]);
  } finally {
    closing.removeEventListener('abort', stop);
  }
}

/** The operation stopped before its end. The changes that it made until then, `done`, stay. */
export class PartlyDone extends Error {
  override readonly name = 'PartlyDone';
  readonly done: object;
  constructor(done: object, cause: unknown) {
    super('It stopped before the end.', { cause });
    this.done = done;
  }
}

/** The message if a subject does not exist, or if the operator has no role that shows it. */
export const noSuch = {
  order: 'No order has this id.',
  webhook: 'No stored webhook has this id.',
  location: 'No location has this id.',
} as const;

/** The wrong fields of a location, with their paths in the body. */
function issuesOf({ cause, issues }: WrongLocation): { issues: readonly ShapeIssue[] } | undefined {
  if (cause?.code === 'wrong_settings') return { issues: cause.issues.map(inSettings) };
  return issues && { issues };
}

/** @throws NotDone if it is a past order, which can at most be read */
async function refusePastOrder(pool: Pool, serviceOrderId: string): Promise<void> {
  if ((await findPastOrder(pool, serviceOrderId)) !== undefined)
    throw new NotDone(409, 'It is a past order. It can be read, but not changed.');
  const left = await findTombstone(pool, serviceOrderId);
  if (left === undefined) return;
  const { locationId, status, month } = left;
  const end = `ended before ${month} at ${locationId}${status === null ? '' : ` as ${status}`}`;
  throw new NotDone(410, `The order ${end}. Its history was deleted after HISTORY_DAYS.`);
}

/** Runs an operation for a request or a command. @throws NotDone */
export async function perform(operation: Operation, caller: Caller, input: Options): Promise<object> {
  const done = await operation.run(caller, input).catch((error: unknown) => {
    if (!(error instanceof WrongLocation)) throw error;
    if (error.cause?.code === 'no_location') return undefined;
    throw new NotDone(400, error.message, issuesOf(error));
  });
  if (typeof done !== 'object' || done === null) {
    const { of } = operation.access;
    if (of === 'order') await refusePastOrder(caller.pool, String(input['serviceOrderId']));
    throw new NotDone(404, operation.missing ?? noSuch[of as keyof typeof noSuch]);
  }
  if ('refused' in done && typeof done.refused === 'string') {
    const { statusCode = 409, cause } = done as Refusal;
    throw new NotDone(statusCode, done.refused, cause);
  }
  if (operation.wakes === undefined || input['dryRun'] === true) return done;
  if (operation.wakes === true) caller.wake();
  caller.wakeBoard();
  return done;
}
