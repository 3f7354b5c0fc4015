import { isObject } from '../domain/json-text.ts';
import type { Credentials, Provider } from '../domain/provider.ts';
import { couldBeToken, maySee } from './describe-settings.ts';

const HIDDEN = '[secret]';

/** The secrets of settings that were read before: settings are kept, and an item map of 256 KiB takes milliseconds. */
const known = new WeakMap<object, readonly string[]>();

/**
 * Lists the texts in settings that operators may not see, and the parts of their URLs that could be tokens.
 * @param former the secrets of the location that a stored webhook held when it arrived
 */
export function secretsOf(provider: Provider, settings: unknown, former: readonly string[] = []): readonly string[] {
  if (typeof settings !== 'object' || settings === null) return former;
  const secrets = known.get(settings) ?? findSecrets(provider, settings);
  known.set(settings, secrets);
  // guard: former-secrets
  return former.length === 0 ? secrets : [...secrets, ...former];
}

function findSecrets(provider: Provider, settings: object): string[] {
  const hidden = Object.entries(settings).filter(([name, value]) => !maySee(provider, name, value));
  return textsIn(hidden.map(([, value]: [string, unknown]) => value)).flatMap((text) => {
    const { pathname = '', search = '', hash = '', searchParams = [] } = URL.parse(text) ?? {};
    const parts = [pathname + search, hash, ...pathname.split('/'), ...[...searchParams].flat()];
    return [text, ...parts.filter(couldBeToken)];
  });
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string' || typeof value === 'number') return [String(value)];
  return isObject(value) ? Object.values(value).flatMap(textsIn) : [];
}

/** Adds the tokens that a call gets and sends to its secrets, because the POS may repeat them. */
export function noteTokens(credentials: Credentials, secrets: string[]): Credentials {
  const accessToken: Credentials['accessToken'] = async (about) => {
    const obtain: typeof about.obtain = async (...sent) => {
      secrets.push(sent[0] ?? '');
      const grant = await about.obtain(...sent);
      secrets.push(grant.accessToken, grant.refreshToken ?? '');
      return grant;
    };
    const token = await credentials.accessToken({ ...about, obtain });
    secrets.push(token);
    return token;
  };
  return { accessToken };
}

/**
 * Hides secrets in all texts of an answer or an error of a POS. A text in which a secret is encoded (percent, JSON,
 * base64, hex) is hidden as a whole. An id with a secret is left out, because no ticket has it. Fields called `settings`
 * stay. A secret that could be an ordinary word, such as the user name "pos", is hidden only in sentences and only where
 * it stands alone: otherwise a status, an id or a part of a word would change. A secret that could be a name, such as
 * `club-north-7` in a POS's URL, is hidden only in sentences, because the POS may use it in its ids and tracking URLs.
 * @returns a copy; an error itself
 * @throws if an error cannot be changed
 */
export function hideSecrets<Value>(value: Value, secrets: readonly string[]): Value {
  const longestFirst = secrets.filter((each) => /[^\\]/.test(each)).toSorted((a, b) => b.length - a.length);
  const unnameable = longestFirst.filter((each) => !couldBeName(each));
  const shortest = longestFirst.at(-1)?.length ?? Infinity;
  const hide = (each: unknown, name = ''): unknown => {
    if (typeof each === 'string') {
      const isSentence = /\s/.test(each);
      // guard: names-stay-in-ids
      const hidden = isSentence ? longestFirst : unnameable;
      const shown = each.length < shortest ? each : hideIn(each, hidden);
      return shown !== each && name.endsWith('Id') ? undefined : shown;
    }
    if (typeof each !== 'object' || each === null || each instanceof Date) return each;
    if (Array.isArray(each)) return each.map((one) => hide(one));
    const shown = each instanceof Error ? each : {};
    for (const key of Object.getOwnPropertyNames(each)) {
      const held: unknown = Reflect.get(each, key);
      const text = key === 'settings' ? held : hide(held, key);
      const isSet = Reflect.get(shown, key) === text || Reflect.set(shown, key, text);
      if (!isSet) throw new Error(`${key} cannot be changed`);
    }
    return shown;
  };
  // guard: no-secret-leaves
  return hide(value) as Value;
}

const GUID = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** True for a GUID, and for words and short numbers, alone or joined as in `club-north-7`. */
function couldBeName(text: string): boolean {
  return GUID.test(text) || /^(?:\p{L}+|\d{1,6})(?:[-_.](?:\p{L}+|\d{1,6}))*$/u.test(text);
}

/** Hides secrets in one text. It stays as it is if it has none. */
export function hideIn(text: string, secrets: readonly string[]): string {
  const tokens = secrets.filter(couldBeToken);
  const words = /\s/.test(text) ? secrets.filter((each) => !couldBeToken(each)) : [];
  const blank = (from: string): string => {
    const left = tokens.reduce((rest, token) => rest.replaceAll(token, HIDDEN), from);
    return words.reduce((rest, word) => (rest.includes(word) ? rest.replace(standingAlone(word), HIDDEN) : rest), left);
  };
  let plain = blank(text);
  let shown = plain;
  // A URL inside a URL inside a URL.
  for (let level = 0; level < 3; level += 1) {
    const decoded = plain
      .replaceAll(/(?:%[0-9a-f]{2})+/gi, (bytes) => Buffer.from(bytes.replaceAll('%', ''), 'hex').toString())
      .replaceAll(/\\u([0-9a-f]{4})/gi, (_, unit: string) => String.fromCharCode(Number.parseInt(unit, 16)));
    plain = blank(decoded);
    if (plain !== decoded) shown = plain;
  }
  // A provider may have cut the text within a secret.
  for (const token of tokens.filter((each) => !each.includes('://'))) {
    const at = shown.lastIndexOf(token.slice(0, 8));
    if (at !== -1 && token.startsWith(shown.slice(at))) shown = shown.slice(0, at) + HIDDEN;
  }
  // A secret may begin at any character of a longer code.
  const decodeAll = (codes: RegExp, by: 'base64' | 'hex'): string[] =>
    [0, 1, 2, 3].flatMap((skip) =>
      (plain.match(codes) ?? []).map((code) => Buffer.from(code.slice(skip), by).toString()),
    );
  const codes = [...decodeAll(/[\w+/-]{10,}/g, 'base64'), ...decodeAll(/[0-9a-f]{16,}/gi, 'hex')];
  const said = withoutEscapes([plain, plain.replaceAll('+', ' '), ...codes].join('\n'));
  // guard: secret-in-code
  return tokens.some((token) => said.includes(withoutEscapes(token))) ? HIDDEN : shown;
}

function standingAlone(word: string): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{N}])${word.replaceAll(/[$()*+.?[\\\]^{|}/]/g, '\\$&')}(?![\\p{L}\\p{N}])`, 'gu');
}

function withoutEscapes(text: string): string {
  return text.replaceAll('\\', '').toLowerCase();
}
