import type { Pool } from 'pg';
import { refuseUrl } from '../core/egress/allowed-hosts.ts';
import { mailProblem, openMail } from '../core/notices/ways.ts';
import { readConfigOf } from '../config/config.ts';
import { hostOf } from './ask-http.ts';
import { failed, ok, warning, type Check } from './check.ts';

const WITHIN_MS = 10_000;

/** Checks the mail server and the gateway for messages to restaurants. It sends none. */
export async function examineNotify(env: NodeJS.ProcessEnv): Promise<Check[]> {
  const names = ['SMTP_URL', 'NOTIFY_WEBHOOK_URL', 'ALLOW_PRIVATE_HOSTS'] as const;
  const { SMTP_URL, NOTIFY_WEBHOOK_URL, ALLOW_PRIVATE_HOSTS } = readConfigOf(env, ...names);
  const gateway = NOTIFY_WEBHOOK_URL && refuseUrl(new URL(NOTIFY_WEBHOOK_URL), ALLOW_PRIVATE_HOSTS);
  return [
    SMTP_URL === undefined ? ok('SMTP_URL', 'unset: no e-mail is sent') : await askMailServer(SMTP_URL),
    NOTIFY_WEBHOOK_URL === undefined
      ? ok('NOTIFY_WEBHOOK_URL', 'unset: no webhook is sent')
      : gateway === undefined
        ? ok('NOTIFY_WEBHOOK_URL', `${hostOf(NOTIFY_WEBHOOK_URL)} may be called`)
        : failed(
            'NOTIFY_WEBHOOK_URL',
            `${hostOf(NOTIFY_WEBHOOK_URL)} must not be called: ${gateway}`,
            'use https and a public address, or add the host to ALLOW_PRIVATE_HOSTS',
          ),
  ];
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
