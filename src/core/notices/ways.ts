import { changesInWords } from '../contacts/changes-in-words.ts';
import { asciiAddress } from '../domain/email.ts';
import { withTimeout } from '../domain/timing.ts';
import { isLoopback } from '../egress/allowed-hosts.ts';
import { NotSent, postSigned, type SignedWebhook } from '../egress/post-signed.ts';
import type { Now } from '../postgres/database-clock.ts';
import { ANSWERS, languageOf, writeNotice, type Told } from './notice-texts.ts';

/** Sends one message. A repeat has the same id, so that a receiver can drop it. @throws NotSent */
export type SendNotice = (messageId: string, told: Told & { locationId: string }) => Promise<void>;
/** A way that the environment does not set up is undefined. */
export type Ways = { email: SendNotice | undefined; webhook: SendNotice | undefined };

export const UNSET = {
  email: 'SMTP_URL is not set, so no e-mail is sent',
  webhook: 'NOTIFY_WEBHOOK_URL is not set, so no webhook is sent',
} as const;

/** Sending never takes longer. It must be shorter than the lease of a message. */
const WITHIN_MS = 30_000;
const TYPE = 'expediter.restaurant.notified.v1';

/** The variables of the environment that set up the ways. */
export const WAYS = ['SMTP_URL', 'MAIL_FROM', 'NOTIFY_WEBHOOK_URL', 'NOTIFY_WEBHOOK_SECRET'] as const;

/** @param send refuses hosts that may not be called */
export function noticeWays(
  config: { [name in Exclude<(typeof WAYS)[number], 'NOTIFY_WEBHOOK_SECRET'>]?: string | undefined } & {
    NOTIFY_WEBHOOK_SECRET?: readonly string[] | undefined;
  },
  send: typeof fetch,
  now: Now,
): Ways {
  const { SMTP_URL: smtp, MAIL_FROM: from, NOTIFY_WEBHOOK_URL: url, NOTIFY_WEBHOOK_SECRET: secrets } = config;
  return {
    email: smtp && from ? (id, told) => sendMail({ url: smtp, from }, id, told) : undefined,
    webhook: url && secrets ? (id, told) => sendWebhook({ url, secrets, send, now }, id, told) : undefined,
  };
}

/** Opens a connection to the mail server. Without TLS it sends only to this machine, unless the URL says otherwise. */
export async function openMail(url: string, waitMs = 20_000) {
  // Loaded for the first message, because few processes send one soon after their start.
  const { createTransport } = await import('nodemailer');
  return createTransport({
    url,
    requireTLS: !isLoopback(URL.parse(url)?.hostname ?? ''),
    connectionTimeout: waitMs / 2,
    greetingTimeout: waitMs / 2,
    socketTimeout: waitMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
}

async function sendMail(about: { url: string; from: string }, id: string, told: Told): Promise<void> {
  const late = (): Error => new NotSent('the mail server did not answer in time');
  return withTimeout(WITHIN_MS, (signal) => sendWithin(about, id, told, signal), late);
}

async function sendWithin(
  { url, from }: { url: string; from: string },
  id: string,
  told: Told,
  signal: AbortSignal,
): Promise<void> {
  const transport = await openMail(url);
  const sender = asciiAddress(from);
  try {
    await transport.sendMail({
      from: sender,
      to: { name: told.contact.name ?? '', address: asciiAddress(told.contact.email ?? '') },
      ...writeNotice(told),
      // guard: same-message-id
      messageId: `<${id}@${sender.split('@')[1]}>`,
      headers: { 'auto-submitted': 'auto-generated' },
      // It also closes the connection, so that a message that is tried again is not sent twice.
      signal,
    });
  } catch (error) {
    throw mailProblem(error);
  }
}

/** An error of nodemailer: at which command of the dialogue, and what the server answered. */
type MailError = { code?: string; command?: string; responseCode?: number; response?: string };

/** Replies that are about an address for good, by their enhanced code: RFC 3463, sections 3.2 and 3.3. */
const OF_ADDRESS = /^55[013][ -]5\.(?:1\.[1236]|1\.10|2\.1)\b/;
/** The same without an enhanced code: RFC 5321, section 4.2.3. */
const UNCODED = /^55[013][ -](?!\d\.\d)/;
/** Words of servers that refuse us, and not the address. A reply may also quote the address, which may have such a word. */
const ABOUT_US = /relay|sender|auth|log ?in|block|spam|policy|reputation|allow|rcpthosts|spf|dkim|dmarc/i;

/** Says what went wrong with the mail server, by the stage of the dialogue, without the server's text. */
export function mailProblem(error: unknown): NotSent {
  const { code = 'unknown', command, responseCode, response = '' } = error as MailError;
  const said = responseCode === undefined ? '' : ` (${responseCode})`;
  // A server that wants to know us first says so at any stage: RFC 4954, section 6, and RFC 3207, section 4.
  if (responseCode === 530) return new NotSent(`the mail server wants a user and a password, or encryption${said}`);
  if (code === 'EENVELOPE' && command === 'RCPT TO') {
    // guard: address-for-good
    const isFinal = OF_ADDRESS.test(response) || (UNCODED.test(response) && !ABOUT_US.test(response));
    const words = isFinal ? 'refused the address' : 'did not take the address from us';
    return new NotSent(`the mail server ${words}${said}`, { isFinal });
  }
  const problems = new Map([
    ['EAUTH', 'the mail server refused our user name and password'],
    [
      'EENVELOPE',
      command === 'MAIL FROM' ? 'the mail server refused our address, MAIL_FROM' : 'the address cannot be used',
    ],
    ['ETLS', 'no encrypted connection to the mail server could be made'],
    ['EREQUIRETLS', 'the mail server offers no encryption'],
  ]);
  return new NotSent(`${problems.get(code) ?? `the mail server could not be used: ${code}`}${said}`);
}

async function sendWebhook(to: SignedWebhook, id: string, told: Told & { locationId: string }): Promise<void> {
  const { contact, locationId, locationName, timeZone, orders, answerUrl } = told;
  const { name, phone, email } = contact;
  const data = {
    to: { name, phone, email },
    language: languageOf(contact.language),
    locationId,
    locationName,
    text: writeNotice(told).text,
    orders: orders.map(({ told, ...order }) => ({
      ...order,
      answers: ANSWERS[order.reason],
      ...(told && { changes: changesInWords(told, languageOf(contact.language), timeZone) }),
    })),
    answerUrl,
  };
  return postSigned(to, { id, body: JSON.stringify({ type: TYPE, id, time: to.now().toISOString(), data }) });
}
