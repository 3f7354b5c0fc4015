import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runDemo } from '../process/demo/run-demo.ts';
import { sharedTmpdir, unprivilegedUser } from '../../world/postgres/unprivileged-user.ts';

it('npm run demo -- --outage: the member gets every status that came during the outage', async () => {
  const dir = mkdtempSync(join(sharedTmpdir(unprivilegedUser()), 'expediter-demo-'));
  chmodSync(dir, 0o755);
  try {
    const { code, stdout, stderr, leftBehind } = runDemo(['--outage', '--once', '--json', '--dir', dir], { dir });
    expect(await code, stderr()).toBe(0);
    const { orders, outage } = JSON.parse(stdout().trimEnd().split('\n').at(-1) ?? '') as Record<string, unknown>;
    expect(outage).toEqual({ seconds: expect.any(Number), accepted: 9, outcomes: { applied: 9 } });
    expect((outage as { seconds: number }).seconds).toBeGreaterThanOrEqual(10);
    expect(orders).toMatchObject([
      { memberStates: ['placed', 'sent', 'confirmed', 'preparing', 'ready_for_pickup', 'picked_up'] },
      {
        memberStates: 'placed sent confirmed preparing ready_for_delivery out_for_delivery delivered'.split(' '),
      },
    ]);
    expect(stderr()).toMatch(
      /Postgres +is stopped[^]+POS +webhook RECEIVED +200 accepted \([0-9a-f-]{36}\)[^]+Postgres +is back[^]+member +live 3 +confirmed/,
    );
    expect(leftBehind()).toEqual([]);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}, 120_000);
