import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runDemo } from '../process/demo/run-demo.ts';
import { sharedTmpdir, unprivilegedUser } from '../../world/postgres/unprivileged-user.ts';

it.each([
  [
    '--outage: the member gets every status that came during the outage',
    [],
    { accepted: 9, repeated: 0, outcomes: { applied: 9 } },
    /RECEIVED +200 accepted \([0-9a-f-]{36}\)/,
  ],
  [
    '--outage --without-google: the POS repeats its webhooks, and the member gets every status',
    ['--without-google'],
    { accepted: 0, repeated: 2, outcomes: {} },
    /RECEIVED +200 applied at attempt \d+/,
  ],
])(
  'npm run demo -- %s',
  async (_, args, counts, told) => {
    const dir = mkdtempSync(join(sharedTmpdir(unprivilegedUser()), 'expediter-demo-'));
    chmodSync(dir, 0o755);
    try {
      const { code, stdout, stderr, leftBehind } = runDemo([...args, '--outage', '--once', '--json', '--dir', dir], {
        dir,
      });
      expect(await code, stderr()).toBe(0);
      const { orders, outage } = JSON.parse(stdout().trimEnd().split('\n').at(-1) ?? '') as Record<string, unknown>;
      expect(outage).toEqual({ seconds: expect.any(Number), ...counts });
      expect((outage as { seconds: number }).seconds).toBeGreaterThanOrEqual(10);
      expect(orders).toMatchObject([
        { memberStates: ['placed', 'sent', 'confirmed', 'preparing', 'ready_for_pickup', 'picked_up'] },
        {
          memberStates: 'placed sent confirmed preparing ready_for_delivery out_for_delivery delivered'.split(' '),
        },
      ]);
      expect(stderr()).toMatch(told);
      expect(stderr()).toMatch(/Postgres +is stopped[^]+Postgres +is back[^]+member +live 3 +confirmed/);
      expect(leftBehind()).toEqual([]);
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  },
  120_000,
);
