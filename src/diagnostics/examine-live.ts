import type { Pool } from 'pg';
import { isPushed, readConfigOf } from '../config/config.ts';
import { describeWays, WAYS } from '../config/describe-ways.ts';
import { readLiveWays } from '../core/live/status-endpoint.ts';
import { listSignalTokens } from '../core/signals/signal-tokens.ts';
import { failed, ok, warning, type Check } from './check.ts';
import { examineReceiver } from './examine-notify.ts';

const URL_NAME = 'STATUS_WEBHOOK_URL';

/** Says which ways in and out of the service are on, and checks that STATUS_WEBHOOK_URL may be called. It sends nothing. */
export async function examineWays(env: NodeJS.ProcessEnv): Promise<Check[]> {
  return [ok('ways', describeWays(readConfigOf(env, ...WAYS))), ...examineReceiver(env, URL_NAME)];
}

/** Checks that signals can come, and that the receiver at STATUS_WEBHOOK_URL takes messages. */
export async function examineHealth(env: NodeJS.ProcessEnv, pool: Pool): Promise<Check[]> {
  return [
    ...(await examineSignals(env, pool)),
    ...(await examineRead(pool)),
    ...(await examineReceiverHealth(env, pool)),
  ];
}

/** Finds that signals came, but no order was read: a wrong path of a REST API is answered like an order that is missing. */
async function examineRead(pool: Pool): Promise<Check[]> {
  const { rows } = await pool.query<{ isUnread: boolean }>(
    'SELECT EXISTS (SELECT FROM placements) AND NOT EXISTS (SELECT FROM orders) AS "isUnread"',
  );
  if (rows[0]?.isUnread !== true) return [];
  const toDo = 'expediter platform check <id>, with the id of a real order';
  return [warning('orders', 'signals came, but no order was read from the platform yet', toDo)];
}

async function examineSignals(env: NodeJS.ProcessEnv, pool: Pool): Promise<Check[]> {
  if (isPushed(readConfigOf(env, ...WAYS))) return [];
  const isValid = ({ state }: { state: string }): boolean => state === 'valid';
  if ((await listSignalTokens(pool)).some(isValid)) return [ok('signal tokens', 'at least one is valid')];
  const toDo = 'expediter signal-token issue --label platform';
  return [warning('signal tokens', 'there is no valid one, so nobody can signal an order', toDo)];
}

async function examineReceiverHealth(env: NodeJS.ProcessEnv, pool: Pool): Promise<Check[]> {
  const { webhook } = await readLiveWays(pool, {
    topic: undefined,
    url: readConfigOf(env, URL_NAME).STATUS_WEBHOOK_URL,
  });
  if (webhook === null) return [];
  const { state, failingSince, stoppedAt, problem, waiting } = webhook;
  const wait = `messages that wait: ${waiting}`;
  if (state === 'working') return [ok('receiver', `no failure is known; ${wait}`)];
  if (state === 'failing') {
    const toDo = 'repair the receiver: each message is repeated, and after three days of failures it is stopped';
    return [warning('receiver', `it fails since ${failingSince}: ${problem}; ${wait}`, toDo)];
  }
  const toDo = `repair the receiver, or change ${URL_NAME}, then run: expediter live resume`;
  return [failed('receiver', `it is stopped since ${stoppedAt}: ${problem}; ${wait}`, toDo)];
}
