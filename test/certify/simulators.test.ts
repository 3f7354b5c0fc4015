/** Every POS that we know, as far as a simulator by its vendor's documents goes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { certify, type CertifyDeps } from '../../src/certify/certify.ts';
import { statusesOf } from '../../src/certify/statuses-of.ts';
import type { Status } from '../../src/core/domain/lifecycle.ts';
import { SIMULATORS, type PosName } from '../simulators/index.ts';
import { balanceLoad } from '../support/balance-load.ts';
import { sampleOrder } from '../support/sample-order.ts';
import type { HttpServer } from '../support/serve-http.ts';
import { startSystem, type System } from '../support/start-system.ts';
import { until } from '../support/until.ts';
import { certifyDeps } from './certify-deps.ts';

/** What a POS does not report, by its vendor's documents: see its page in docs/providers. */
const WITHOUT: Partial<Record<PosName, readonly (Status | 'repeats')[]>> = {
  square: ['received'],
  'lightspeed-k': ['in_progress', 'repeats'],
  deliverect: ['repeats'],
  toast: ['received'],
};
/** Longer than certify takes to look. */
const STEP_MS = 700;

let system: System;
let balancer: HttpServer;
let deps: CertifyDeps;

beforeAll(async () => {
  // Some sign the URL that they call.
  balancer = await balanceLoad(() => system?.urls ?? []);
  system = await startSystem({ env: { PUBLIC_URL: balancer.url } });
  await until(async () => (await fetch(`${balancer.url}/readyz`)).ok);
  deps = await certifyDeps(system);
});
afterAll(async () => {
  await system?.stop();
  await Promise.all([deps?.pool.end(), balancer?.stop()]);
});

it.concurrent.each(Object.entries(SIMULATORS))('the simulator of %s passes', async (name, startSimulator) => {
  const pos = await startSimulator({ hurry: 100 });
  const without = WITHOUT[name as PosName] ?? [];
  try {
    await system.addLocation(name, pos.settings, pos.integration);
    const webhookUrl = (await system.webhookUrl(name)).replace(system.urls[0] ?? '', balancer.url);
    let cooking: Promise<void> | undefined;
    const cook = async (): Promise<void> => {
      const [ticket] = pos.tickets;
      if (ticket === undefined) throw new Error('there is no ticket');
      for (const status of pos.lifeOf('pickup')) {
        await pos.report(webhookUrl, ticket, status);
        await sleep(STEP_MS);
      }
    };
    const { checks } = await certify(
      deps,
      {
        locationId: name,
        contents: sampleOrder(),
        statuses: statusesOf('pickup').filter((status) => !without.includes(status)),
        repeats: !without.includes('repeats'),
        limits: { statusMs: 10_000, graceMs: 5_000 },
        signal: new AbortController().signal,
      },
      { wants: () => void (cooking ??= cook()), found: () => {} },
    );
    await cooking;
    expect(checks.filter(({ state }) => state === 'failed')).toEqual([]);
    expect(pos.tickets).toHaveLength(1);
    expect(pos.refusals).toEqual([]);
  } finally {
    await pos.stop();
  }
});
