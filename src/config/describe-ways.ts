import { isPushed, type Config } from './config.ts';

/** The variables that turn ways in and out of the service on. */
export const WAYS = [
  'GOOGLE_CLOUD_PROJECT',
  'PUSH_AUTH',
  'PUSH_AUDIENCE',
  'PUSH_SERVICE_ACCOUNT',
  'STATUS_TOPIC',
  'STATUS_WEBHOOK_URL',
  'FOLLOW_TOKEN_KEYS',
  'SPILL_TOPIC',
] as const satisfies (keyof Config)[];

/** Says by which ways signals come and statuses leave, and what happens to webhooks while Postgres is away. */
export function describeWays(config: Pick<Config, (typeof WAYS)[number]>): string {
  const { GOOGLE_CLOUD_PROJECT, STATUS_TOPIC, STATUS_WEBHOOK_URL, FOLLOW_TOKEN_KEYS, SPILL_TOPIC } = config;
  const signals = [isPushed(config) && 'Pub/Sub pushes', 'POST /signal'];
  const statuses = [GOOGLE_CLOUD_PROJECT && `the topic ${STATUS_TOPIC}`, STATUS_WEBHOOK_URL && 'STATUS_WEBHOOK_URL'];
  const members = FOLLOW_TOKEN_KEYS === undefined ? '' : '; members follow orders by GET /follow';
  const spill =
    SPILL_TOPIC === undefined
      ? 'there is no spill: while Postgres is away, a webhook gets 500, and is lost unless the POS repeats it'
      : `while Postgres is away, webhooks wait in the topic ${SPILL_TOPIC}`;
  return `signals come by ${joined(signals)}; statuses leave by ${joined(statuses)}${members}; ${spill}`;
}

function joined(ways: (string | false | undefined)[]): string {
  return ways.filter(Boolean).join(' and ');
}
