import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { KINDS, LANES, planFaults, type Fault } from '../../chaos/plan-faults.ts';
import { scriptOrder } from '../../chaos/script-order.ts';

const CHAOS = fileURLToPath(new URL('../../chaos/chaos.ts', import.meta.url));

function chaos(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  return new Promise((ended) => {
    execFile(process.execPath, [CHAOS, ...args], { maxBuffer: 2 ** 24 }, (error, out, err) => {
      ended({ code: Number(error?.code ?? 0), out, err });
    });
  });
}

describe('twenty seconds of faults', () => {
  it('lose nothing, double nothing, and no order ends at the wrong place', { timeout: 240_000 }, async () => {
    // How soon it recovers is no claim of a machine that runs other tests beside it.
    const { code, out, err } = await chaos('--seconds', '20', '--seed', '18', '--recovery', '30', '--json');
    expect(code, err).toBe(0);
    const result = JSON.parse(out.trim().split('\n').at(-1) ?? '') as Record<string, unknown>;
    expect(result).toMatchObject({
      seed: 18,
      ok: true,
      lost: 0,
      ticketsDoubled: 0,
      ticketsMissing: 0,
      ordersDiverged: 0,
      liveMissing: 0,
      liveOutOfOrder: 0,
      crossLocation: 0,
      recoverySeconds: expect.any(Number),
      liveLagP99Ms: expect.any(Number),
      failoverSeconds: expect.any(Number),
    });
    expect(result['acknowledged']).toBeGreaterThan(500);
    expect(result['faults']).toMatchObject({
      kill: expect.any(Number),
      commit: expect.any(Number),
      failover: 1,
      'dead-pos': 1,
      tills: 2,
    });
    expect(result['tillSales']).toBeGreaterThan(500);
  });
});

describe('a seed', () => {
  const all = new Set(KINDS);
  const locations = ['club-1', 'club-2', 'club-3'];
  const scripts = (seed: number) => Array.from({ length: 200 }, (_, nth) => scriptOrder(seed, nth + 1, locations, all));

  it('gives the same faults and the same orders again, and another seed gives others', () => {
    expect(planFaults(7, 300, all, 6)).toEqual(planFaults(7, 300, all, 6));
    expect(scripts(7)).toEqual(scripts(7));
    expect(planFaults(7, 300, all, 6)).not.toEqual(planFaults(8, 300, all, 6));
    expect(scripts(7).map(({ reports }) => reports)).not.toEqual(scripts(8).map(({ reports }) => reports));
  });

  it('leaves no kind of fault out of five minutes, and two of a lane never overlap', () => {
    const plan = planFaults(7, 300, all, 6);
    const planned = new Set([...plan.map(({ kind }) => kind), ...scripts(7).flatMap(({ faults }) => faults)]);
    expect([...all].filter((kind) => !planned.has(kind))).toEqual(['dead-pos', 'clock', 'snapshot', 'tills']);
    for (const lane of Object.keys(LANES)) {
      const own = plan.filter((fault) => fault.lane === lane);
      for (const [nth, { at, lasts }] of own.entries()) {
        expect(at + lasts).toBeLessThanOrEqual(own[nth + 1]?.at ?? 300);
      }
    }
    const kills = (each: Fault[]): number => each.filter(({ kind }) => kind === 'kill').length;
    expect(kills(plan)).toBeGreaterThanOrEqual(20);
    expect(kills(planFaults(7, 300, all, 24))).toBeGreaterThanOrEqual(45);
  });
});

describe('--only', () => {
  it('leaves the other faults out', () => {
    const only = new Set(['kill', 'early'] as const);
    expect(new Set(planFaults(7, 300, only, 6).map(({ kind }) => kind))).toEqual(new Set(['kill']));
    const scripts = Array.from({ length: 100 }, (_, nth) => scriptOrder(7, nth, ['club-1', 'club-2'], only));
    expect(new Set(scripts.flatMap(({ faults }) => faults))).toEqual(new Set(['early']));
  });

  it('names the faults there are when one is unknown', async () => {
    const { code, err } = await chaos('--only', 'kill,meteor');
    expect(code).toBe(2);
    expect(err).toContain('there is no fault "meteor"');
    expect(err).toContain('publish-hang');
  });
});
