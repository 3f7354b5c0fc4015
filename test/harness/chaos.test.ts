import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { BALANCED } from '../../tools/chaos/check-books.ts';
import {
  KINDS,
  LANES,
  PLACES_WHILE_AWAY,
  planFaults,
  secondsToBeAway,
  type Fault,
  type Lane,
} from '../../tools/chaos/plan-faults.ts';
import { readChaosArguments } from '../../tools/chaos/read-chaos-arguments.ts';
import { scriptOrder } from '../../tools/chaos/script-order.ts';
import { runToEnd, type Ended } from '../../world/processes/run-program.ts';

const CHAOS = fileURLToPath(new URL('../../tools/chaos/chaos.ts', import.meta.url));

const chaos = (...args: string[]): Promise<Ended> => runToEnd(CHAOS, {}, args);

describe('twenty seconds of faults', () => {
  it(
    'lose no order, create no second ticket, and send no order to the wrong location',
    { timeout: 240_000 },
    async () => {
      // The time of recovery is not judged on a machine that runs other tests at the same time.
      const { code, out, error } = await chaos('--seconds', '20', '--seed', '61', '--recovery', '30', '--json');
      expect(code, error).toBe(0);
      const result = JSON.parse(out.trim().split('\n').at(-1) ?? '') as Record<string, unknown>;
      expect(result).toMatchObject({
        seed: 61,
        ok: true,
        ...BALANCED,
        phones: 16,
        recoverySeconds: expect.any(Number),
        liveLagP99Ms: expect.toBeOneOf([expect.any(Number), null]),
        failoverSeconds: expect.any(Number),
      });
      expect(result['acknowledged']).toBeGreaterThan(100);
      expect(result['spilled']).toBeGreaterThan(0);
      expect(result['faults']).toMatchObject({
        kill: expect.any(Number),
        commit: expect.any(Number),
        away: 1,
        failover: 1,
        'dead-pos': 1,
        tills: 2,
        cancel: expect.any(Number),
      });
      expect(result['tillSales']).toBeGreaterThan(100);
    },
  );
});

describe('twenty seconds of faults without Google', () => {
  it('lose no order, no status, and no order of statuses by webhook', { timeout: 240_000 }, async () => {
    const args = ['--doors', 'http', '--seconds', '20', '--seed', '61', '--recovery', '30', '--json'];
    const { code, out, error } = await chaos(...args);
    expect(code, error).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      ok: true,
      ...BALANCED,
      spilled: 0,
      faults: { 'receiver-errs': expect.any(Number), 'receiver-away': expect.any(Number), kill: expect.any(Number) },
    });
  });
});

describe('processes that die at 50 moments of archiving', () => {
  it('lose no order, and store none twice', { timeout: 240_000 }, async () => {
    const { code, out, error } = await chaos('--only', 'archive', '--seed', '46', '--json');
    expect(code, error).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      ok: true,
      killsWriting: expect.any(Number),
      killsDropping: expect.any(Number),
      lost: 0,
      doubled: 0,
    });
  });
});

describe('a seed of the chaos run', () => {
  const all = new Set(KINDS);
  const locations = ['club-1', 'club-2', 'club-3'];
  const plan = (seed: number, kills = 6) => planFaults({ seed, seconds: 300, only: all, kills, awayS: 10 });
  const scripts = (seed: number) => Array.from({ length: 200 }, (_, nth) => scriptOrder(seed, nth + 1, locations, all));

  it('always gives the same faults and orders, and another seed gives others', () => {
    expect(plan(7)).toEqual(plan(7));
    expect(scripts(7)).toEqual(scripts(7));
    expect(plan(7)).not.toEqual(plan(8));
    expect(scripts(7).map(({ reports }) => reports)).not.toEqual(scripts(8).map(({ reports }) => reports));
  });

  it('never plans two faults of one lane at the same time, and plans each frequent kind within five minutes', () => {
    const faults = plan(7);
    const planned = new Set([...faults.map(({ kind }) => kind), ...scripts(7).flatMap(({ faults }) => faults)]);
    expect([...all].filter((kind) => !planned.has(kind))).toEqual(['dead-pos', 'clock', 'snapshot', 'tills']);
    for (const lane of Object.keys(LANES)) {
      const own = faults.filter((fault) => fault.lane === lane);
      expect(own.filter(({ kind }) => !Object.hasOwn(LANES[lane as Lane], kind))).toEqual([]);
      for (const [nth, { at, lasts }] of own.entries()) {
        expect(at + lasts).toBeLessThanOrEqual(own[nth + 1]?.at ?? 300);
      }
    }
    const kills = (each: Fault[]): number => each.filter(({ kind }) => kind === 'kill').length;
    expect(kills(faults)).toBeGreaterThanOrEqual(20);
    expect(kills(plan(7, 24))).toBeGreaterThanOrEqual(45);
  });
});

describe('--only', () => {
  it('plans only the faults that it names', () => {
    const only = new Set(['kill', 'early'] as const);
    const plan = planFaults({ seed: 7, seconds: 300, only, kills: 6, awayS: 10 });
    expect(new Set(plan.map(({ kind }) => kind))).toEqual(new Set(['kill']));
    const scripts = Array.from({ length: 100 }, (_, nth) => scriptOrder(7, nth, ['club-1', 'club-2'], only));
    expect(new Set(scripts.flatMap(({ faults }) => faults))).toEqual(new Set(['early']));
  });

  it('with "away" plans outages of the given length, and does not kill every process during one', () => {
    const only = new Set(['away'] as const);
    for (const awayS of [1, 10, 60, 600]) {
      const seconds = Math.max(60, secondsToBeAway(awayS));
      const plan = planFaults({ seed: 7, seconds, only, kills: 6, awayS });
      const outages = plan.filter(({ kind }) => kind === 'away');
      expect(outages.length).toBeGreaterThan(0);
      expect(new Set(outages.map(({ lasts }) => lasts))).toEqual(new Set([awayS]));
      expect(plan).toEqual(outages);
      for (const { kills } of outages) {
        expect(kills).toBeGreaterThan(0);
        expect(kills).toBeLessThan(PLACES_WHILE_AWAY);
      }
    }
  });

  it('with "away" runs as long as the outage needs, and refuses a shorter time', () => {
    const read = (...args: string[]) => readChaosArguments(['--only', 'away', ...args]);
    expect(read()).toMatchObject({ seconds: 60, awayS: 10 });
    expect(read('--away', '600')).toMatchObject({ seconds: 615, awayS: 600 });
    expect(() => read('--away', '60', '--seconds', '74')).toThrow('--away 60 needs --seconds 75 at least, not "74"');
  });

  it('with silent, phones, kitchen, contacts, archive or versions takes no other fault', () => {
    const read = (...args: string[]) => readChaosArguments(['--only', ...args]);
    for (const alone of ['silent', 'phones', 'kitchen', 'contacts', 'archive', 'versions'])
      expect(read(alone)).toMatchObject({ alone });
    expect(read('versions', '--rolls', '100')).toMatchObject({ rolls: 100 });
    expect(() => read('versions', '--rolls', '3')).toThrow('--rolls takes a whole number');
    expect(read('kill')).toMatchObject({ alone: undefined });
    expect(() => read('kill,phones')).toThrow('no other fault goes with "phones"');
  });

  it('with a fault of other doors is refused', () => {
    expect(readChaosArguments(['--doors', 'http']).only.has('publish')).toBe(false);
    expect(readChaosArguments([]).only.has('receiver-away')).toBe(false);
    expect(() => readChaosArguments(['--doors', 'http', '--only', 'publish'])).toThrow('there is no "publish"');
    expect(() => readChaosArguments(['--only', 'receiver-errs'])).toThrow('there is no "receiver-errs"');
    expect(() => readChaosArguments(['--doors', 'fax'])).toThrow('--doors takes pubsub or http, not "fax"');
  });

  it('with an unknown fault exits 2 and lists the known faults', async () => {
    const { code, error } = await chaos('--only', 'kill,meteor');
    expect(code).toBe(2);
    expect(error).toContain('there is no fault "meteor"');
    expect(error).toContain('publish-hang');
  });
});
