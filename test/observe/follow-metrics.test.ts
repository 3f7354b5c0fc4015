import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { logJourneys } from '../../src/observe/events.ts';
import { FOLLOW_ENV, memberToken } from '../../world/members/member-token.ts';
import { readEvents, type ReadEvents } from '../support/read-events.ts';
import { post, startSystem, statusWebhook, type System } from '../../world/system/start-system.ts';
import { until } from '../../world/processes/until.ts';
import { OPERATOR_TOKEN, scrape } from './scrape.ts';

let system: System;
let serviceOrderId: string;
beforeAll(async () => {
  system = await startSystem({
    stepped: 'all',
    processes: 2,
    env: { ...FOLLOW_ENV, OPERATOR_TOKEN, FOLLOW_STREAMS_MAX: '2' },
  });
  await system.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  serviceOrderId = `order-${randomUUID()}`;
  await system.seedOrder({ serviceOrderId, locationId: 'club-1' });
});
afterAll(() => system?.stop());

const follow = async (token?: string): Promise<ReadEvents> =>
  readEvents(`${system.urls[0]}/follow`, {
    authorization: `Bearer ${token ?? (await memberToken(serviceOrderId))}`,
  });

/** Of the first process. */
async function told(name: string, labels?: Record<string, string>): Promise<number | undefined> {
  return (await scrape(system.urls[0] ?? '')).value(`expediter_follow_${name}`, labels);
}

it('the metrics count open streams, refusals by reason, and the delay of each message', async () => {
  const [one, other] = await Promise.all([follow(), follow()]);
  expect((await follow()).status).toBe(503);
  expect((await follow('eyJhbGciOiJub25lIn0.e30.')).status).toBe(401);
  expect(await told('streams')).toBe(2);
  expect(await told('opened_total')).toBe(2);
  expect(await told('refused_total', { reason: 'too_many' })).toBe(1);
  expect(await told('refused_total', { reason: 'bad_token' })).toBe(1);
  expect(await told('lag_seconds_count')).toBe(0);

  other.leave();
  await until(async () => (await told('streams')) === 1);
  expect(await told('closed_total', { reason: 'left' })).toBe(1);
  await post(await system.webhookUrl('club-1'), statusWebhook({ serviceOrderId, status: 'READY' }));
  await until(() => one.events.length === 2);
  expect(await told('lag_seconds_count')).toBe(1);
  // In seconds, however slow this machine is.
  expect(await told('lag_seconds_sum')).toBeLessThan(100);
  expect(system.logged.join('')).not.toContain('eyJ');
});

it('another process shows that a member is watching, until the process with the stream stops', async () => {
  const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
  const isWatching = async (): Promise<boolean> => {
    const answer = await fetch(`${system.urls[1]}/v1/orders/${serviceOrderId}`, { headers });
    return ((await answer.json()) as { memberWatching: boolean }).memberWatching;
  };
  await system.round('recording of followed orders');
  expect(await isWatching()).toBe(true);
  await system.drain(0);
  expect(await isWatching()).toBe(false);
});

it('the log has a line for a stream only if the stream has a problem, and at most 20 lines with the same text', () => {
  const lines: string[] = [];
  const write =
    (level: string) =>
    (about: object, message: string): void =>
      void lines.push(`${level} ${message} ${JSON.stringify(about)}`);
  const observe = logJourneys({ info: write('info'), warn: write('warn'), error: write('error') });
  observe({ what: 'follow', action: 'open' });
  observe({ what: 'follow', action: 'deliver', milliseconds: 1 });
  observe({ what: 'follow', action: 'close', reason: 'left' });
  expect(lines).toEqual([]);
  for (let nth = 0; nth < 100; nth += 1) {
    observe({ what: 'follow', action: 'refuse', reason: 'bad_token', detail: 'of another audience' });
    observe({ what: 'follow', action: 'close', reason: 'slow' });
  }
  observe({ what: 'follow', action: 'refuse', reason: 'too_many', detail: '2 are open' });
  const said = Object.groupBy(lines, (line) => line);
  expect(Object.entries(said).map(([line, times]) => [line, times?.length])).toEqual([
    ['info follow request refused {"reason":"bad_token","detail":"of another audience"}', 20],
    ['warn follow stream closed: its client does not read {}', 20],
    ['warn follow request could not be served {"reason":"too_many","detail":"2 are open"}', 1],
  ]);
});
