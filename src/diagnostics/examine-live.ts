import type { Pool } from 'pg';
import { readConfigOf } from '../config/config.ts';
import { describeWays, WAYS } from '../config/describe-ways.ts';
import { readLiveWays } from '../core/live/status-endpoint.ts';
import { failed, ok, warning, type Check } from './check.ts';
import { examineReceiver } from './examine-notify.ts';

const URL_NAME = 'STATUS_WEBHOOK_URL';

/** Says which ways in and out of the service are on, and checks that STATUS_WEBHOOK_URL may be called. It sends nothing. */
export async function examineWays(env: NodeJS.ProcessEnv): Promise<Check[]> {
  return [ok('ways', describeWays(readConfigOf(env, ...WAYS))), ...examineReceiver(env, URL_NAME)];
}

/** Checks whether the receiver at STATUS_WEBHOOK_URL takes messages. */
export async function examineHealth(env: NodeJS.ProcessEnv, pool: Pool): Promise<Check[]> {
  const { webhook, waiting } = await readLiveWays(pool, {
    topic: undefined,
    url: readConfigOf(env, URL_NAME).STATUS_WEBHOOK_URL,
  });
  if (webhook === null) return [];
  const { state, failingSince, stoppedAt, problem } = webhook;
  const wait = `messages that wait: ${waiting}`;
  if (state === 'working') return [ok('receiver', `its last message was taken; ${wait}`)];
  if (state === 'failing') {
    const toDo = 'repair the receiver: each message is repeated, and after three days of failures it is stopped';
    return [warning('receiver', `it fails since ${failingSince}: ${problem}; ${wait}`, toDo)];
  }
  const toDo = `repair the receiver, or change ${URL_NAME}, then run: expediter live resume`;
  return [failed('receiver', `it is stopped since ${stoppedAt}: ${problem}; ${wait}`, toDo)];
}
