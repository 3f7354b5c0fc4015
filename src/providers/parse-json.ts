import { Poison } from '../core/domain/errors.ts';

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
