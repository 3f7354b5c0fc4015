import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import type { FollowObserved } from '../../src/core/domain/observed.ts';
import { countBy } from '../../src/observe/count-by.ts';
import { followMetrics } from '../../src/observe/follow-metrics.ts';
import { gaugeBy } from '../../src/observe/gauge-by.ts';
import { logJourneys } from '../../src/observe/log-journeys.ts';
import { measureBy } from '../../src/observe/measure-by.ts';

const REFUSED = { what: 'follow', did: 'refuse', why: 'bad_token', detail: 'of another audience' } as const;
const FULL = { what: 'follow', did: 'refuse', why: 'too_many', detail: '2 streams' } as const;
const SLOW = { what: 'follow', did: 'close', why: 'slow' } as const;
const OPEN = { what: 'follow', did: 'open' } as const;

it('what is open is what was opened and not closed, and how late it was told is measured in seconds', async () => {
  const registry = new Registry();
  const observe = followMetrics(
    (name, help, labels) => countBy(registry, name, help, labels),
    gaugeBy(registry),
    (name, help, buckets, labels) => measureBy(registry, { name, help, buckets, labels }),
  );
  const told: FollowObserved = { what: 'follow', did: 'tell', milliseconds: 300 };
  for (const observed of [OPEN, OPEN, OPEN, REFUSED, FULL, SLOW, told]) observe(observed);
  const lines = (await registry.metrics()).split('\n');
  expect(lines).toEqual(
    expect.arrayContaining([
      'expediter_follow_streams 2',
      'follow_opened_total 3',
      'follow_refused_total{reason="bad_token"} 1',
      'follow_refused_total{reason="too_many"} 1',
      'follow_closed_total{reason="slow"} 1',
      'follow_closed_total{reason="ended"} 0',
      'follow_lag_seconds_bucket{le="0.25"} 0',
      'follow_lag_seconds_bucket{le="0.5"} 1',
    ]),
  );
});

it('of streams, the log has what somebody may have to mend, and a flood of strangers does not hide it', () => {
  const lines: string[] = [];
  const write =
    (level: string) =>
    (about: object, message: string): void =>
      void lines.push(`${level} ${message} ${JSON.stringify(about)}`);
  const observe = logJourneys({ info: write('info'), warn: write('warn'), error: write('error') });
  for (let nth = 0; nth < 100; nth += 1) for (const observed of [OPEN, REFUSED, SLOW]) observe(observed);
  observe({ what: 'follow', did: 'close', why: 'ended' });
  observe({ what: 'follow', did: 'tell', milliseconds: 1 });
  observe(FULL);
  const told = Object.groupBy(lines, (line) => line);
  expect(Object.entries(told).map(([line, times]) => [line, times?.length])).toEqual([
    ['info follow token refused {"why":"bad_token","detail":"of another audience"}', 20],
    ['warn follower dropped: it does not read {}', 20],
    ['warn follower turned away {"why":"too_many","detail":"2 streams"}', 1],
  ]);
});
