import { z, type ZodType } from 'zod';
import { Poison, TryAgain } from '../core/domain/errors.ts';
import { describeIssues, Id, Time } from '../core/domain/order.ts';
import { shapeIssues } from '../core/domain/shape-issues.ts';
import { compareRead } from '../core/domain/unread-fields.ts';
import type { PosAnswer } from './call-pos.ts';

/** Maximum depth of nesting. The payloads of POS systems have some ten levels. */
const DEEPEST = 100;
const utf8 = new TextDecoder('utf-8', { fatal: true });
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** The bit that turns a square bracket into a curly one: `[` becomes `{`. */
const CURLY = 0x20;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/**
 * Parses the JSON body of a webhook.
 * @param wanted describes the expected body for the error message, as in "an object with eventType and order"
 * @throws Poison
 */
export function parseJson(body: Buffer, wanted: string): unknown {
  // Parsing a few hundred kB of brackets would block the process for 10 ms.
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
    // V8's own message would quote the body, which may hold member data.
    throw new Poison(`the body is not JSON: ${wanted} is required`, { cause: { code: 'not_json', wanted } });
  }
}

/**
 * Counts the brackets outside strings, byte by byte. No byte of a multi-byte UTF-8 character equals a bracket, a quote
 * or a backslash. With a `switch` for every byte, this took as long as parsing.
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

/** Each schema's compiled form, made at its first use. It is several times as fast, and leaves little garbage. */
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
 * @throws Poison that names the wrong fields, never their values: a value may be member data
 */
export function readShape<Shape>(schema: ZodType<Shape>, json: unknown): Shape {
  const result = compile(schema).safeParse(json, { reportInput: true });
  if (result.success) {
    compareRead(json, result.data);
    return result.data;
  }
  throw new Poison(describeIssues(result.error), {
    cause: { code: 'wrong_shape', issues: shapeIssues(result.error) },
  });
}

/**
 * Reads a POS's answer about an order's state.
 * @param read reads the JSON; throws Poison as `readShape` does
 * @throws TryAgain that names the wrong fields, never their values. The order's state is then still unknown
 */
export function readState<State>({ status: httpStatus, json }: PosAnswer, read: (json: unknown) => State): State {
  try {
    return read(json);
  } catch (error) {
    if (!(error instanceof Poison)) throw error;
    const message = `the POS's answer about the order is not usable: ${error.message}`;
    throw new TryAgain(message, { sent: false, httpStatus });
  }
}

/** Schema of the order's id in an answer. It takes only the requested id: another id means another order. */
export function requestedId(id: string) {
  return z.string().refine((given) => given === id, { error: 'belongs to another order than the requested one' });
}

/** A field that may be left out. Many POS systems write null or an empty string instead, so both count as left out. */
export function absentable<Shape extends z.ZodType>(shape: Shape) {
  return z.preprocess((value) => (value === null || value === '' ? undefined : value), shape.optional());
}

/**
 * A field of a webhook that only adds to it. A value that cannot be read counts as left out, so that the rest still counts:
 * only what names the order and its status is required. The webhook's page lists the field.
 */
export function ifAny<Shape extends z.ZodType>(shape: Shape) {
  return absentable(shape).catch(undefined);
}

/** A text, or a list of texts. */
export const textIfAny = ifAny(
  z
    .union([z.string(), z.array(z.string()).min(1)])
    .transform((text) => (typeof text === 'string' ? text : text.join('; '))),
);

/** One of the ids of an order. Some POS systems write a number, which beyond 2^53 may be another one. */
export const idIfAny = ifAny(z.preprocess((id) => (Number.isSafeInteger(id) ? String(id) : id), Id));

/**
 * The time of an event. Two vendors write its offset without a colon (`+0000`). An invalid time becomes undefined, so
 * that the rest of the event still counts.
 */
export const timeIfAny = ifAny(
  z.preprocess((time) => (typeof time === 'string' ? time.replace(/([+-]\d\d)(\d\d)$/, '$1:$2') : time), Time),
);
