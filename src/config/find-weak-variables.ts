import { keyOf } from '../core/domain/standard-webhooks.ts';
import type { Config } from './config.ts';

/** What to do about a proxy in front that TRUSTED_PROXIES does not name. */
export const NAME_PROXIES =
  'set TRUSTED_PROXIES to its addresses; until then all senders count as one source: docs/deploy.md#who-is-in-front';

/** The fewest different steps from one character to the next. 32 random bytes have 16 or more, in base64 or in hex. */
const STEPS = 13;
const NEW = 'make a new one: openssl rand -base64 32';
const SECRETS = ['STATUS_WEBHOOK_SECRET', 'NOTIFY_WEBHOOK_SECRET'] as const;
const WORDS = /\b([a-z]{2,20}[-_. ]){4}/;

/**
 * Finds variables that work, but protect too little: secrets that a person wrote, and networks of proxies that hold a part
 * of the internet. The next major version refuses them.
 */
export function findWeakVariables(config: Config): { name: string; found: string; toDo: string }[] {
  const { OPERATOR_TOKEN = '', AVAILABILITY_TOKEN = '', TRUSTED_PROXIES } = config;
  const wide = TRUSTED_PROXIES.filter((proxy) => {
    const [address = '', bits = '128'] = proxy.split('/');
    return Number(bits) < (address.includes(':') ? 7 : 8);
  });
  const found = 'it can be guessed, and the next major version refuses it';
  const claims = `with ${wide.join()}, any sender can claim any address, and the next major version refuses it`;
  return [
    { is: isWritten(OPERATOR_TOKEN), name: 'OPERATOR_TOKEN', found, toDo: NEW },
    { is: isWritten(AVAILABILITY_TOKEN), name: 'AVAILABILITY_TOKEN', found, toDo: NEW },
    ...SECRETS.map((name) => ({
      is: config[name]?.some(isWrittenKey) === true,
      name,
      found,
      toDo: `${NEW}, after whsec_`,
    })),
    {
      is: wide.length > 0,
      name: 'TRUSTED_PROXIES',
      found: claims,
      toDo: 'name only your own proxies: docs/deploy.md#who-is-in-front',
    },
  ].flatMap(({ is, ...weak }) => (is ? [weak] : []));
}

/** Whether a person wrote the key of a secret. Random bytes are never all printable. */
function isWrittenKey(secret: string): boolean {
  const key = keyOf(secret).toString('latin1');
  return isWritten(key) || /^[ -~]+$/.test(key);
}

/** Whether a person wrote the text: a repetition, a row of neighbours, words. */
function isWritten(text: string): boolean {
  const steps = Array.from(text, (_, nth) => text.charCodeAt(nth) - text.charCodeAt(nth - 1));
  return text !== '' && (new Set(steps).size < STEPS || WORDS.test(text));
}
