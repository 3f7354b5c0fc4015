import { z, type ZodType } from 'zod';
import { Poison, TryAgain } from '../core/domain/errors.ts';
import { describeIssues, StatusEvent } from '../core/domain/order.ts';
import { shapeIssues } from '../core/domain/shape-issues.ts';
import type { PosAnswer } from './call-pos.ts';

/** The deepest nesting read. Payloads of POS systems nest some ten deep. */
const DEEPEST = 100;
const utf8 = new TextDecoder('utf-8', { fatal: true });
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** A bracket with this bit is curly: `[` becomes `{`. */
const CURLY = 0x20;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/**
 * Parses the JSON body of a webhook.
 * @param wanted what the body should be, for the message, as in "an object with eventType and order"
 * @throws Poison
 */
export function parseJson(body: Buffer, wanted: string): unknown {
  // A few hundred kB of brackets would block the process for 10 ms.
  if (isDeeperThan(DEEPEST, body)) {
    throw new Poison(`the body is nested deeper than ${DEEPEST}: ${wanted} is required`, {
      cause: { code: 'too_deep', limit: DEEPEST },
    });
  }
  let text: string;
  try {
    text = utf8.decode(body);
  } catch {
    throw new Poison('the body is not UTF-8: JSON in UTF-8 is required', { cause: { code: 'not_utf8' } });
  }
  try {
    return JSON.parse(text);
  } catch {
    // V8's own message quotes the body.
    throw new Poison(`the body is not JSON: ${wanted} is required`, { cause: { code: 'not_json', wanted } });
  }
}

/**
 * Counts the brackets outside strings. Bytes of longer UTF-8 characters are all above those compared here. A `switch` for
 * every byte took as long as to parse them.
 */
function isDeeperThan(limit: number, body: Buffer): boolean {
  let depth = 0;
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at] ?? 0;
    if (byte === QUOTE) {
      at += 1;
      while (at < body.length && body[at] !== QUOTE) at += body[at] === BACKSLASH ? 2 : 1;
    } else if ((byte | CURLY) === OPEN) {
      depth += 1;
      if (depth > limit) return true;
    } else if ((byte | CURLY) === CLOSE) {
      depth -= 1;
    }
  }
  return false;
}

/** Each is compiled when it is first used: several times as fast, and with little for the garbage collector. */
const compiled = new WeakMap<ZodType, ZodType>();

function compile<Shape>(schema: ZodType<Shape>): ZodType<Shape> {
  let known = compiled.get(schema) as ZodType<Shape> | undefined;
  if (known === undefined) {
    known = z.compile(schema);
    compiled.set(schema, known);
  }
  return known;
}

/**
 * Reads a part of a webhook by its schema.
 * @throws Poison that names the fields which are wrong and never their values, as those may be a member's
 */
export function readShape<Shape>(schema: ZodType<Shape>, json: unknown): Shape {
  const result = compile(schema).safeParse(json, { reportInput: true });
  if (result.success) return result.data;
  throw new Poison(describeIssues(result.error), {
    cause: { code: 'wrong_shape', issues: shapeIssues(result.error) },
  });
}

/**
 * Reads what a POS answers about an order's state.
 * @param read reads its JSON, and throws Poison as `readShape` does
 * @throws TryAgain that names the fields which are wrong and never their values: nobody knows more than before
 */
export function readState<State>({ status: httpStatus, json }: PosAnswer, read: (json: unknown) => State): State {
  try {
    return read(json);
  } catch (error) {
    if (!(error instanceof Poison)) throw error;
    const message = `what the POS answered about the order cannot be used: ${error.message}`;
    throw new TryAgain(message, { sent: false, httpStatus });
  }
}

/** The id of what was asked about. An answer with another is about another order. */
export function asked(id: string) {
  return z.string().refine((given) => given === id, { error: "is another order's than the one asked about" });
}

/** A field that may be left out. Null and an empty string count as left out, since many POS systems write them. */
export function absentable<Shape extends z.ZodType>(shape: Shape) {
  return z.preprocess((value) => (value === null || value === '' ? undefined : value), shape.optional());
}

/**
 * A time of an event. An offset without a colon (`+0000`) is read as well: two vendors write it so. A time that cannot be
 * stored is left out, and the event kept.
 */
export const timeIfAny = z
  .preprocess(
    (time) => (typeof time === 'string' ? time.replace(/([+-]\d\d)(\d\d)$/, '$1:$2') : time),
    StatusEvent.shape.occurredAt,
  )
  .catch(undefined);
