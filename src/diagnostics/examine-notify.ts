import type { Pool } from 'pg';
import { refuseUrl } from '../core/egress/allowed-hosts.ts';
import { mailProblem, openMail } from '../core/notices/ways.ts';
import { readConfigOf } from '../config/config.ts';
import { hostOf } from './ask-http.ts';
import { failed, ok, warning, type Check } from './check.ts';

const WITHIN_MS = 10_000;

/** Checks the mail server and the receivers of messages to restaurants and of attention events. It sends none. */
export async function examineNotify(env: NodeJS.ProcessEnv): Promise<Check[]> {
  const { SMTP_URL } = readConfigOf(env, 'SMTP_URL');
  return [
    SMTP_URL === undefined ? ok('SMTP_URL', 'unset: no e-mail is sent') : await askMailServer(SMTP_URL),
    ...examineReceiver(env, 'NOTIFY_WEBHOOK_URL'),
    ...examineReceiver(env, 'ATTENTION_WEBHOOK_URL'),
  ];
}

type Receiver = 'STATUS_WEBHOOK_URL' | 'NOTIFY_WEBHOOK_URL' | 'ATTENTION_WEBHOOK_URL';

/** Checks that the URL of a receiver of our webhooks may be called. It sends none. */
export function examineReceiver(env: NodeJS.ProcessEnv, name: Receiver): Check[] {
  const { [name]: url, ALLOW_PRIVATE_HOSTS } = readConfigOf(env, name, 'ALLOW_PRIVATE_HOSTS');
  if (url === undefined) return [ok(name, 'unset: no webhook is sent')];
  const why = refuseUrl(new URL(url), ALLOW_PRIVATE_HOSTS);
  if (why === undefined) return [ok(name, `${hostOf(url)} may be called`)];
  const toDo = 'use https and a public address, or add the host to ALLOW_PRIVATE_HOSTS';
  return [failed(name, `${hostOf(url)} must not be called: ${why}`, toDo)];
}

async function askMailServer(url: string): Promise<Check> {
  const transport = await openMail(url, WITHIN_MS);
  try {
    await transport.verify();
    // Whether it takes MAIL_FROM and sends on, only a message shows.
    const logsIn = URL.parse(url)?.username === '' ? 'it is reached, without a log-in' : 'it takes our log-in';
    return ok('SMTP_URL', `${logsIn}. To see whether it sends: expediter location notify-test`);
  } catch (error) {
    return failed('SMTP_URL', mailProblem(error).message, 'check the host, port, user and password in SMTP_URL');
  }
}

/** Finds contacts that should be told by a way that is not set up. */
export async function examineContacts(env: NodeJS.ProcessEnv, pool: Pool): Promise<Check[]> {
  const { SMTP_URL, NOTIFY_WEBHOOK_URL } = readConfigOf(env, 'SMTP_URL', 'NOTIFY_WEBHOOK_URL');
  const { rows } = await pool.query<{ via: string; locations: string[] }>(
    `SELECT c ->> 'via' AS via, array_agg(DISTINCT location_id) AS locations
     FROM locations, jsonb_array_elements(contacts) AS c WHERE c ? 'via' GROUP BY 1 ORDER BY 1`,
  );
  const unset = {
    email: SMTP_URL === undefined && 'SMTP_URL',
    webhook: NOTIFY_WEBHOOK_URL === undefined && 'NOTIFY_WEBHOOK_URL',
  };
  return rows.flatMap(({ via, locations }) => {
    const name = unset[via as keyof typeof unset];
    if (!name) return [];
    const where = `${locations.slice(0, 5).join(', ')}${locations.length > 5 ? ` and ${locations.length - 5} more` : ''}`;
    return [
      warning('contacts', `they are to be told by ${via} at ${where}`, `set ${name}, or remove via from the contacts`),
    ];
  });
}
