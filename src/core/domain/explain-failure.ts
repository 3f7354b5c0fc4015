/**
 * Turns a stored problem into a sentence for people, and keeps its codes as details for a technician. The console and the
 * commands use it when they show a problem, so that rows of earlier versions read well too.
 */
import { labelOf } from './label-of.ts';
import { pathInWords } from './path-in-words.ts';

export type Failure = {
  says: string;
  /** The text as it is stored. Null if the sentence says the same. */
  details: string | null;
};

/** Codes of Node, undici, c-ares and OpenSSL, by what they mean. `who` is the other side. The first row that matches counts. */
const NETWORK: readonly (readonly [codes: RegExp, says: (who: string) => string])[] = [
  [/^(EAI_AGAIN|ETIMEOUT|ESERVFAIL|EREFUSED)$/, (who) => `The name server gave no address of ${low(who)}.`],
  [/^(ENOTFOUND|ENODATA|EBADNAME|EAI_\w+)$/, (who) => `The host name of ${low(who)} is unknown.`],
  [/^ECONNREFUSED$/, (who) => `${who} refused the connection: no program listens at its address.`],
  [
    /^(ECONNRESET|ECONNABORTED|EPIPE|UND_ERR_SOCKET|UND_ERR_CLOSED|UND_ERR_DESTROYED)$/,
    (who) => `${who} closed the connection without an answer.`,
  ],
  [
    /^(ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_HANDSHAKE_TIMEOUT)$/,
    (who) => `${who} did not take the connection in time.`,
  ],
  [
    /^(UND_ERR_(HEADERS|BODY)_TIMEOUT|UND_ERR_ABORTED|ABORT_ERR|ERR_HTTP_REQUEST_TIMEOUT)$/,
    (who) => `${who} did not answer in time.`,
  ],
  [/^(EHOST(UNREACH|DOWN)|ENET(UNREACH|DOWN|RESET)|EADDRNOTAVAIL)$/, (who) => `The network has no way to ${low(who)}.`],
  [/^CERT_(HAS_EXPIRED|NOT_YET_VALID)$/, (who) => `The certificate of ${low(who)} has expired, or is not valid yet.`],
  [
    /^(ERR_TLS_CERT_ALTNAME_\w+|HOSTNAME_MISMATCH)$/,
    (who) => `The certificate of ${low(who)} is for another host name.`,
  ],
  [
    /^(CERT_\w+|CRL_\w+|(DEPTH_ZERO_)?SELF_SIGNED_CERT(_IN_CHAIN)?|UNABLE_TO_\w+|INVALID_(CA|PURPOSE)|PATH_LENGTH_EXCEEDED)$/,
    (who) => `The certificate of ${low(who)} is not trusted.`,
  ],
  [/^(EPROTO|ERR_SSL_\w+|ERR_TLS_\w+)$/, (who) => `${who} and the service found no common form of TLS.`],
  [/^(HPE_\w+|UND_ERR_(HEADERS_OVERFLOW|RES_\w+|RESPONSE\w*)|ERR_HTTP\w*)$/, (who) => `${who} did not answer in HTTP.`],
  [/^(EMFILE|ENFILE|ENOBUFS|ENOMEM)$/, () => 'This service had no room for another connection.'],
];
const low = (who: string): string => who.charAt(0).toLowerCase() + who.slice(1);

/** @param end what is certain if the code is unknown */
function networkSays(code: string | undefined, who: string, end: 'no connection' | 'no answer'): string {
  const known = code === undefined ? undefined : NETWORK.find(([codes]) => codes.test(code));
  if (known !== undefined) return known[1](who);
  return end === 'no connection'
    ? `No connection to ${low(who)} could be made.`
    : `The connection to ${low(who)} broke, and no answer came.`;
}

const CODE = String.raw`[A-Z][A-Z\d_]{2,}`;
/** What an error of `callPos` says after the name of its request. Other texts are sentences already. */
const OF_CALLS: readonly (readonly [said: RegExp, says: (...found: string[]) => string])[] = [
  [
    new RegExp(`^(${CODE}|undefined): (no connection|no answer)$`),
    (code = '', end) => networkSays(code, 'The POS', end as 'no answer'),
  ],
  [/^the connection broke: no answer$/, () => networkSays(undefined, 'The POS', 'no answer')],
  [/^no answer in time$/, () => 'The POS did not answer in time.'],
  [/^the attempt timed out before this call$/, () => 'The attempt took too long, so this call was not made.'],
  [
    /^the POS answered (3\d\d): the URL is wrong$/,
    () => 'The POS answered with a redirect, which is not followed. Correct its URL.',
  ],
  [/^the POS answered (\d{3})$/, (status = '') => `The POS ${statusSays(status)}.`],
];
/** What an answer means by its status. The details keep the number. */
const STATUSES: readonly (readonly [statuses: RegExp, says: string])[] = [
  [/^3/, 'answered with a redirect'],
  [/^40[13]$/, 'denies us access'],
  [/^4(04|05|10)$/, 'has nothing at this address'],
  [/^429$/, 'takes no more requests for now'],
  [/^4/, 'did not accept the request'],
  [/^5/, 'answered with an error of its own'],
];
const statusSays = (status: string): string => STATUSES.find(([each]) => each.test(status))?.[1] ?? 'answered';
/** After a status of success, the rest of the text says what is wrong. */
const ANSWERED = /\banswered (?:([3-5]\d\d)(?: with errors)?|2\d\d)\b/g;
/** The same of other requests, such as to the ordering platform and to receivers of messages. */
const IN_BRACKETS = new RegExp(
  `^(?:.*[: ])?(?:its name cannot be resolved|no service listens there|no connection|the receiver could not be reached) \\((${CODE})\\)$`,
);
/** What providers say of an order, with a code or fields after the status. */
const REFUSED = /\b(refused [a-z ]+) with [3-5]\d\d\b( (?!for\b)(?=\w))?/g;

/** Variables of the service's environment that sentences tell people to set. All other codes in a sentence are foreign. */
const VARIABLE =
  /^(ORDER_(API_URL|API_TOKEN|MODULE)|SETTINGS_KEY|PROVIDER_MODULES|(PUBLIC|CONSOLE|SMTP)_URL|ALLOW_PRIVATE_HOSTS|WEBHOOK_BODY_LIMIT|(STATUS|NOTIFY)_WEBHOOK_URL|MAIL_FROM|OPERATOR_TOKEN|OIDC_ISSUER|HISTORY_DAYS)$/;

/** @param text a stored `problem` or `error` */
export function explainFailure(text: string): Failure {
  const says = asSentence(clauseOf(text));
  return { says, details: asSentence(text) === says ? null : text };
}

/** The words without a full stop, where there is no room for details. */
export const saysOf = (problem: string | null): string | null => (problem === null ? null : clauseOf(problem));

function clauseOf(text: string): string {
  const [, first, last] = /^(.*); last problem: (.*)$/s.exec(text) ?? [];
  if (first !== undefined && last !== undefined)
    return `${clauseOf(first)}; before: ${clauseOf(last).replace(/^The /, 'the ')}`;
  const request = /^(?:(.*): )?(?:GET|HEAD|POST|PUT|PATCH|DELETE) (?:https?:|\(not a URL)\S*: (.*)$/s;
  const [, before, said = text] = request.exec(text) ?? [];
  for (const [pattern, says] of OF_CALLS) {
    const found = pattern.exec(said);
    if (found === null) continue;
    const because = says(...found.slice(1)).replace(/\.$/, '');
    const isSame = before === undefined || before === 'the POS could not be reached';
    return isSame ? because : `${inPlainWords(before)}: ${because}`;
  }
  const [bracketed, code] = IN_BRACKETS.exec(said) ?? [];
  if (bracketed !== undefined) return networkSays(code, sideIn(bracketed), 'no connection').replace(/\.$/, '');
  if (/^unexpected \w+$/.test(said)) return 'an unexpected error occurred. Report it: the log has more';
  return outsideQuotes(said, (part) =>
    plainWordsOf(part)
      .replaceAll(ANSWERED, (_, status = '') => statusSays(status))
      .replaceAll(REFUSED, (_, refused: string, code) => (code === undefined ? refused : `${refused} with `))
      .replaceAll(FOREIGN, (code) => code.replaceAll('_', ' ')),
  );
}

function sideIn(text: string): string {
  if (text.includes('receiver')) return 'The receiver';
  return text.includes('platform') || text.includes('ORDER_MODULE') ? 'The ordering platform' : 'The other side';
}

const PATH = /(?<![\w./:@"-])[a-z][A-Za-z_]*(?:\.(?:[A-Za-z]\w*|\d+))+(?![\w/"-]|:\/)/g;
const NAME = /“?(?<![\w./:@"-])[a-z]+(?:[A-Z][a-z\d]*)+(?![\w/"-]|[.@]\w|:\/)”?/g;
const CODES = /(?<![\w./:@"[-])[A-Z\d]+(?:_[A-Z\d]+)+(?![\w/"-]|[.@]\w|:\/)/g;
/** In a text without ids of ours, because these may look the same. */
const FOREIGN = /(?<![\w./:@"[-])[a-z\d]+(?:_[a-z\d]+)+(?![\w/"-]|[.@]\w|:\/)/g;
const TIME = /\b\d{4}-\d\d-\d\dT[\d:.]+(?:Z|\+00(?::00)?)/g;
const LOCAL = { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' } as const;

/**
 * Writes settings as the form labels them, and paths of fields, codes of other systems and times as words. A text in
 * straight quotes stays: ids and names are written so.
 */
export function inPlainWords(text: string): string {
  return outsideQuotes(text, plainWordsOf);
}

function outsideQuotes(text: string, change: (part: string) => string): string {
  return text
    .split(/("[^"]*")/)
    .map((part, nth) => (nth % 2 === 1 ? part : change(part)))
    .join('');
}

/** Writes the times in a text as the reader's clock shows them. */
export const timesInWords = (text: string): string =>
  text.replaceAll(TIME, (time) =>
    Number.isNaN(Date.parse(time)) ? time : new Date(time).toLocaleString('en-GB', LOCAL),
  );

function plainWordsOf(text: string): string {
  return timesInWords(text)
    .replaceAll(PATH, (path) => (/[a-z][A-Z]|\.\d/.test(path) ? pathInWords(path.replace('settings.', '')) : path))
    .replaceAll(NAME, (name) => `“${labelOf(name.replaceAll(/[“”]/g, ''))}”`)
    .replaceAll(CODES, (code) => (VARIABLE.test(code) ? code : code.replaceAll('_', ' ').toLowerCase()));
}

function asSentence(text: string): string {
  const [first = ''] = text.trim();
  return `${first.toUpperCase()}${text.trim().slice(first.length)}`.replace(/[.!?:]?$/, (end) =>
    end === '' ? '.' : end,
  );
}
