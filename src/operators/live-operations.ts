import { z } from 'zod';
import { facts, time } from '../terminal/print.ts';
import { LIVE_WAYS } from '../core/domain/live-message.ts';
import { LiveWays, readLiveWays, resendLive, resumeEndpoint } from '../core/live/status-endpoint.ts';
import { operation, type Caller, type Operation } from './operation.ts';
import { oneOf, optionsOf, When } from './requests.ts';

/** The variables that say how live messages leave the service. */
const WAYS_OUT = ['GOOGLE_CLOUD_PROJECT', 'STATUS_TOPIC', 'STATUS_WEBHOOK_URL'] as const;
export type WaysOut = Pick<Caller['config'], (typeof WAYS_OUT)[number]>;

function waysOf({ config }: Pick<Caller, 'config'>): { topic: string | undefined; url: string | undefined } {
  const { GOOGLE_CLOUD_PROJECT: project, STATUS_TOPIC: topic, STATUS_WEBHOOK_URL: url } = config;
  return { topic: project === undefined ? undefined : topic, url };
}

const show = operation({
  id: 'showLive',
  access: { role: 'any', of: 'none' },
  api: {
    route: 'GET /live/ways',
    summary: 'How live messages leave, and whether they do',
    description: 'A receiver that fails for three days, or answers 410, is stopped. Its messages wait.',
    output: LiveWays,
    answer: 'The ways, and what waits.',
  },
  reads: WAYS_OUT,
  run: async (caller) => readLiveWays(caller.pool, waysOf(caller)),
  print: ({ topic, webhook, oldestAppliedAt }) =>
    facts({
      topic: topic === null ? 'none' : `${topic.name}; messages that wait: ${topic.waiting}`,
      webhook: webhook === null ? 'none' : `${inWords(webhook)}; messages that wait: ${webhook.waiting}`,
      'oldest since': oldestAppliedAt === null ? null : time(oldestAppliedAt),
    }),
  command: {
    name: 'live show',
    about: 'how live messages leave the service, and whether they do',
    examples: ['expediter live show'],
  },
});

function inWords({ state, failingSince, stoppedAt, problem }: NonNullable<LiveWays['webhook']>): string {
  if (state === 'working') return 'works';
  if (state === 'failing') return `fails since ${time(failingSince)}: ${problem}`;
  return `stopped since ${time(stoppedAt)}: ${problem}. Fix it, then: expediter live resume`;
}

const resume = operation({
  id: 'resumeLive',
  access: { role: 'operator', of: 'all', does: 'resume live messages' },
  api: {
    route: 'POST /live/resume',
    summary: 'Send to a stopped receiver again',
    description: 'All messages that waited are sent, each order in its order.',
    output: z.object({ resumed: z.boolean().meta({ description: 'False if the receiver was not stopped.' }) }),
    answer: 'Whether it was stopped.',
  },
  wakes: true,
  run: async ({ pool }) => ({ resumed: await resumeEndpoint(pool) }),
  print: ({ resumed }) =>
    resumed
      ? 'Messages are sent to STATUS_WEBHOOK_URL again.'
      : 'It was not stopped. While it fails, messages are tried again within half a minute.',
  command: {
    name: 'live resume',
    about: 'send to STATUS_WEBHOOK_URL again, after it was stopped',
    argument: false,
    examples: ['expediter live resume'],
  },
});

const ResendBody = z
  .strictObject({
    since: When.describe('Messages that were sent at this time or later.'),
    until: When.optional().describe('Messages that were sent before this time. By default now.'),
    way: oneOf(LIVE_WAYS, 'Only by this way. By default by all.').optional(),
  })
  .meta({ examples: [{ since: '2027-01-31T18:00:00Z', way: 'webhook' }] });

const resend = operation({
  id: 'resendLive',
  access: { role: 'operator', of: 'all', does: 'resend live messages' },
  api: {
    route: 'POST /live/resend',
    summary: 'Send live messages of a time once more',
    description:
      "They have their own sequences, so a reader that knows them drops them. Each order's are sent in order, before its " +
      'newer ones. It begins within some minutes. Messages of past orders, a day after their erasure, are not sent.',
    output: z.object({ messages: z.int().meta({ description: 'The number of messages that are sent again.' }) }),
    answer: 'How many.',
  },
  body: ResendBody,
  reads: WAYS_OUT,
  async run(caller, { since, until, way }) {
    const { topic, url } = waysOf(caller);
    if ((way === 'topic' && topic === undefined) || (way === 'webhook' && url === undefined)) {
      const name = way === 'topic' ? 'GOOGLE_CLOUD_PROJECT' : 'STATUS_WEBHOOK_URL';
      return { refused: `No message leaves by ${way}: ${name} is not set.` };
    }
    const messages = await resendLive(caller.pool, { since, until, way });
    caller.note(`${messages} messages`);
    return { messages };
  },
  print: ({ messages }) =>
    messages === 0
      ? 'No message was sent in this time.'
      : `${messages} messages are sent again. This begins within a minute or two.`,
  command: {
    name: 'live resend',
    about: 'send live messages of a time once more, for a reader that lost them',
    argument: false,
    options: [
      { flags: '--since <time>', about: 'messages that were sent at this time or later', required: true, read: 'past' },
      ...optionsOf(ResendBody, '--until <time>', '--way <way>'),
    ],
    examples: ['expediter live resend --since 2h'],
  },
});

export const LIVE_OPERATIONS: readonly Operation[] = [show, resume, resend];
