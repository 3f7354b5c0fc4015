import type { Pool } from 'pg';
import type { z } from 'zod';
import type { Action } from '../core/operators/audit.ts';
import type { Registry } from '../core/domain/provider.ts';
import type { Actor, Role } from '../core/operators/operator.ts';
import type { RetranslateDeps } from '../core/replay/retranslate.ts';
import type { LocationDeps } from '../core/locations/check-location.ts';
import { WrongLocation } from '../core/locations/locations.ts';
import type { Now } from '../core/postgres/database-clock.ts';
import type { DatabaseState } from '../core/postgres/watch-database.ts';
import type { SpillState } from '../core/spill/spill-webhook.ts';
import type { Config } from '../server/config.ts';

/** The role that a route needs, and what the audit records of it. */
export type Access = {
  role: Role;
  /**
   * Where the role is needed:
   *
   * - `order`, `webhook`, `location`: at the location of the one in the path. Elsewhere the answer is as if it did not exist
   * - `list`: anywhere. The route leaves out other locations with `within`
   * - `given`: at each of the body's `locations`, or without them at all locations
   * - `all`: at all locations
   * - `none`: at any location
   */
  of: 'order' | 'webhook' | 'location' | 'list' | 'given' | 'all' | 'none';
  /** It sends no query to Postgres, so operators with a cached permission may use it while Postgres is unavailable. */
  whileAway?: true;
  /** The action's name in the audit. Every operation that changes something has one. */
  does?: string;
  /**
   * Set if the answer may contain member data: it then needs `member-data` as well, and the audit records this action. `when`
   * gets the query both before and after validation, which turns text into booleans.
   */
  reveals?: { action: string; when: (query: Readonly<Record<string, unknown>>) => boolean };
};

/** Variables that reading settings needs, as the service has them. */
export const SETTINGS = ['SETTINGS_KEY', 'PROVIDER_MODULES', 'PUBLIC_URL'] as const;
/** Variables that calling POS systems needs. */
export const POS = [...SETTINGS, 'ALLOW_PRIVATE_HOSTS'] as const;
export type Settings = Omit<RetranslateDeps, 'pool'> & { registry: Registry };

/** The caller of an operation and its dependencies, the same for a request and for a command. */
export type Caller = {
  pool: Pool;
  by: Actor & Pick<Action, 'source' | 'requestId' | 'log'>;
  /** The locations that an answer may cover. @returns undefined for all of them */
  within(asked?: string): readonly string[] | undefined;
  /** Sets the outcome code in the audit. The default is the state of the order or location. */
  note(after: string): void;
  /** Only for an operation that reads `SETTINGS`: other commands start faster without it. */
  settings: Settings;
  /** Only for an operation that reads `POS`. */
  pos: LocationDeps;
  /** The variables that the operation reads, where they are set. */
  config: Partial<Config>;
  /** Only in the service. A command has none of it. */
  service?: {
    /** Invalidates cached permissions, after this process has changed some. */
    identify: { invalidateCache(): void };
    now: Now;
    /** Aborts at the end of a drain. */
    closing: AbortSignal;
    readiness(): { database: DatabaseState };
    spillState(): SpillState;
  };
  /** True once the answer is not needed: the caller has left, or the process ends. */
  isOver(): boolean;
  /** Wakes the workers of this process. In a command it does nothing: Postgres notifies the workers. */
  wake(): void;
};

/** An option of a command: its flags, its help, and how its text is read. */
export type CommandOption = {
  flags: string;
  about: string;
  required?: true;
  choices?: readonly string[];
  /** `past`: a time or a duration ago. `limit`: rows of a list. Otherwise a function of the text and the previous value. */
  read?: 'past' | 'limit' | ((text: string, before?: string[]) => unknown);
  conflicts?: string;
};
export type Options = Readonly<Record<string, unknown>>;

export type CommandAbout = {
  /** Such as `order show`. */
  name: string;
  about: string;
  /** Its flags, its help, and the input field that it sets. */
  argument?: { flags: string; about: string; field: string };
  options?: readonly CommandOption[];
  /**
   * Finds path parameters of the route that are not typed.
   * @returns why there are none, in a sentence without the typed text, which may be a secret
   */
  complete?(pool: Pool, typed: Options): Promise<Options | string>;
  /** Words between the subject and a refusal, such as `cannot be removed`. */
  cannot?: string;
  /** Help text below the options. */
  more?: string;
  examples: readonly string[];
  /**
   * Makes the input of a request from the typed `argument` and options, by their names. By default these are the names of
   * the input's fields.
   * @returns the input of another operation, if the options ask for that one
   * @throws NotDone
   */
  read?(typed: Options): Typed | Promise<Typed>;
  /** The output field that holds the rows. `--json` prints these, and all pages of them are read. */
  rows?: string;
};
type Typed = Options | { operation: Operation; input: Options };

type Shapes = { params?: z.ZodObject; query?: z.ZodObject; body?: z.ZodType };
type Of<Shape> = Shape extends z.ZodType ? z.output<Shape> : unknown;
type InputOf<S extends Shapes> = Of<S['params']> & Of<S['query']> & Of<S['body']>;
type Refusal = { refused: string; cause?: unknown };
type Done<Result> = Exclude<Result, Refusal | undefined>;

/** What only the API needs. */
type Api<Output> = {
  /** Method and path, as Fastify has them, below the prefix of the API. */
  route: `${'GET' | 'POST'} /${string}`;
  tag: string;
  summary: string;
  description: string;
  output: Output;
  /** The output, in a sentence. */
  answer: string;
  /** True if the current state may not allow it: 409. */
  refuses?: true;
};

type About<S extends Shapes, Input, Result> = Access &
  S & {
    id: string;
    /** The sentence if the subject does not exist, where it is none of `noSuch`. */
    missing?: string;
    /** Variables that a command needs, besides those of the database. */
    reads?: readonly (keyof Config)[];
    /** True if it creates work for the workers of this process. */
    wakes?: true;
    /** @returns a refusal, or undefined if the subject does not exist */
    run(caller: Caller, input: Input): Promise<Result>;
    /** Describes the output for people. */
    print?(done: Done<Result>, input: Input): string | Promise<string>;
    /** Whether a command fails despite its output. @returns the reason, or true if the output has it */
    fails?(done: Done<Result>, input: Input): string | boolean;
    /** More fields of the action in the audit. */
    about?(caller: Caller, input: Input): Promise<Partial<Action>>;
    command?: CommandAbout;
  };

/** An operation of operators, the only definition for the API and the command line. It has at least one of these two. */
export type Operation = About<Shapes, Options, unknown> & { api?: Api<z.ZodType> };

export function operation<
  const S extends Shapes,
  Output extends z.ZodType,
  Result extends z.output<Output> | Refusal | undefined,
>(about: About<S, InputOf<S>, Result> & { api?: Api<Output> }): Operation {
  return about as unknown as Operation;
}

/** Nothing was done. The status is the reason for programs. */
export class NotDone extends Error {
  override readonly name = 'NotDone';
  readonly statusCode: 400 | 404 | 409;
  constructor(statusCode: 400 | 404 | 409, message: string, cause?: unknown) {
    super(message, { cause });
    this.statusCode = statusCode;
  }
}

/** The operation stopped half-way. Its changes until then stay. */
export class PartlyDone extends Error {
  override readonly name = 'PartlyDone';
  readonly done: object;
  constructor(done: object, cause: unknown) {
    super('It stopped before the end.', { cause });
    this.done = done;
  }
}

/** The sentence if something does not exist, or if the operator may not know that it does. */
export const noSuch = {
  order: 'No order has this id.',
  webhook: 'No stored webhook has this id.',
  location: 'No location has this id.',
} as const;

/** Runs an operation, for both adapters. @throws NotDone */
export async function perform(operation: Operation, caller: Caller, input: Options): Promise<object> {
  const done = await operation.run(caller, input).catch((error: unknown) => {
    if (!(error instanceof WrongLocation)) throw error;
    if (error.cause?.code === 'no_location') return undefined;
    throw new NotDone(400, error.message);
  });
  if (typeof done !== 'object' || done === null)
    throw new NotDone(404, operation.missing ?? noSuch[operation.of as keyof typeof noSuch]);
  if ('refused' in done && typeof done.refused === 'string') {
    throw new NotDone(409, done.refused, 'cause' in done ? done.cause : undefined);
  }
  if (operation.wakes === true && input['dryRun'] !== true) caller.wake();
  return done;
}
