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

/** Who may use a route, and what is written down of it. */
export type Access = {
  role: Role;
  /**
   * What decides at which location the role is needed:
   *
   * - `order`, `webhook`, `location`: that of the one in the path. Of others' it is answered as if there were none
   * - `list`: the route itself leaves out what is elsewhere, by `within`
   * - `given`: the body's `locations`: at each of them, and without them at all
   * - `all`: it is about all locations, and takes the role at all of them
   * - `none`: it is about no location
   */
  of: 'order' | 'webhook' | 'location' | 'list' | 'given' | 'all' | 'none';
  /** It asks Postgres nothing, so whom it was known to be open to may go on while that is away. */
  whileAway?: true;
  /** The act's name in the audit. Every operation that changes something has one. */
  does?: string;
  /**
   * Member data in the answer: then it takes `member-data` as well, and the audit names it. The query is looked at
   * before it was validated and after that, when it has booleans.
   */
  reveals?: { action: string; when: (query: Readonly<Record<string, unknown>>) => boolean };
};

/** What settings are read with, as the service has it. */
export const SETTINGS = ['SETTINGS_KEY', 'PROVIDER_MODULES', 'PUBLIC_URL', 'PARK_TTL_S'] as const;
/** What asks POS systems needs beside them. */
export const POS = [...SETTINGS, 'ALLOW_PRIVATE_HOSTS'] as const;
export type Settings = Omit<RetranslateDeps, 'pool'> & { registry: Registry; parkTtlS: number };

/** Who runs an operation, and what it runs with: the same for a request and for a command. */
export type Caller = {
  pool: Pool;
  by: Actor & Pick<Action, 'source' | 'requestId' | 'log'>;
  /** The locations that an answer may be about. @returns undefined for all of them */
  within(asked?: string): readonly string[] | undefined;
  /** Says for the audit what came of it, as a code: by default the state of the order or location. */
  note(after: string): void;
  /** What settings are read with. Only for an operation that reads `SETTINGS`: a command starts quicker without. */
  settings: Settings;
  /** What asks POS systems. Only for an operation that reads `POS`. */
  pos: LocationDeps;
  /** Of the variables that the operation reads, those that are set. */
  config: Partial<Config>;
  /** What the process has beside the database. A command has none of it. */
  service?: {
    /** Has everybody looked up again, after this process has changed who may what. */
    identify: { invalidateCache(): void };
    now: Now;
    /** Aborts at the end of a drain. */
    closing: AbortSignal;
    readiness(): { database: DatabaseState };
    spillState(): SpillState;
  };
  /** True once nobody waits for the answer: who asked has left, or the process ends. */
  isOver(): boolean;
  /** Signals work to the workers of this process. A command has none: they hear of it from Postgres. */
  wake(): void;
};

/** An option of a command: its flags, its help, and how its text is read. */
export type CommandOption = {
  flags: string;
  about: string;
  required?: true;
  choices?: readonly string[];
  /** `past`: a time, or a while ago. `limit`: rows of a list. Otherwise a function of the text, and of what was there. */
  read?: 'past' | 'limit' | ((text: string, before?: string[]) => unknown);
  conflicts?: string;
};
export type Options = Readonly<Record<string, unknown>>;

export type CommandAbout = {
  /** Such as `order show`. */
  name: string;
  about: string;
  /** Its flags, its help, and the field of the input that it is. */
  argument?: { flags: string; about: string; field: string };
  options?: readonly CommandOption[];
  /**
   * Finds what the route has in its path and nobody types.
   * @returns why there is none, in a sentence without what was typed, which may be a secret
   */
  complete?(pool: Pool, typed: Options): Promise<Options | string>;
  /** Words between what it is about and a refusal, such as `cannot be removed`. */
  cannot?: string;
  /** What stands below the options in its help. */
  more?: string;
  examples: readonly string[];
  /**
   * Makes the input of what was typed, as a request would have it: `argument` and options by their names. By default
   * these are the names of the input's fields.
   * @returns what another operation is to do, where the options say so
   * @throws NotDone
   */
  read?(typed: Options): Typed | Promise<Typed>;
  /** The field of the output that holds the rows: these are printed as JSON, and all pages of them are read. */
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
  /** What the output is, in a sentence. */
  answer: string;
  /** True if it may not be possible as things are: 409. */
  refuses?: true;
};

type About<S extends Shapes, Input, Result> = Access &
  S & {
    id: string;
    /** What is said where there is no such thing, if it is none of `noSuch`. */
    missing?: string;
    /** What a command needs of the environment, beside the database. */
    reads?: readonly (keyof Config)[];
    /** True if it makes work for the workers of this process. */
    wakes?: true;
    /** @returns a refusal, or undefined if there is no such thing */
    run(caller: Caller, input: Input): Promise<Result>;
    /** Says the output in words. */
    print?(done: Done<Result>, input: Input): string | Promise<string>;
    /** Whether a command fails in spite of its output. @returns why, or true where the output says it */
    fails?(done: Done<Result>, input: Input): string | boolean;
    /** What else its act is about. */
    about?(caller: Caller, input: Input): Promise<Partial<Action>>;
    command?: CommandAbout;
  };

/** What operators can do: the one place that says it, for the API and for the command line. One has at least one of these. */
export type Operation = About<Shapes, Options, unknown> & { api?: Api<z.ZodType> };

export function operation<
  const S extends Shapes,
  Output extends z.ZodType,
  Result extends z.output<Output> | Refusal | undefined,
>(about: About<S, InputOf<S>, Result> & { api?: Api<Output> }): Operation {
  return about as unknown as Operation;
}

/** Why nothing was done: the status that says it to a program. */
export class NotDone extends Error {
  override readonly name = 'NotDone';
  readonly statusCode: 400 | 404 | 409;
  constructor(statusCode: 400 | 404 | 409, message: string, cause?: unknown) {
    super(message, { cause });
    this.statusCode = statusCode;
  }
}

/** What ended half-way. What was done until then stays done. */
export class PartlyDone extends Error {
  override readonly name = 'PartlyDone';
  readonly done: object;
  constructor(done: object, cause: unknown) {
    super('It stopped before the end.', { cause });
    this.done = done;
  }
}

/** What is said where there is no such thing, or where there is one that the operator may not know of. */
export const noSuch = {
  order: 'No order has this id.',
  webhook: 'No stored webhook has this id.',
  location: 'No location has this id.',
} as const;

/** Runs an operation, the same for both adapters. @throws NotDone */
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
