import { Poison } from '../core/domain/errors.ts';

/** The deepest nesting read. Payloads of POS systems nest some ten deep. */
const DEEPEST = 100;
const utf8 = new TextDecoder('utf-8', { fatal: true });

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

/** Counts the brackets outside strings. Bytes of longer UTF-8 characters are all above those compared here. */
function isDeeperThan(limit: number, body: Buffer): boolean {
  let depth = 0;
  let inString = false;
  for (let at = 0; at < body.length; at += 1) {
    switch (body[at] ?? 0) {
      case 0x22 /* " */:
        inString = !inString;
        break;
      case 0x5c /* \ */:
        if (inString) at += 1;
        break;
      case 0x5b /* [ */:
      case 0x7b /* { */:
        if (!inString) depth += 1;
        if (depth > limit) return true;
        break;
      case 0x5d /* ] */:
      case 0x7d /* } */:
        if (!inString) depth -= 1;
        break;
      default:
    }
  }
  return false;
}
