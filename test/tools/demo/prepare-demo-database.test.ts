import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { deleteDemoDatabase } from '../../../tools/demo/prepare-demo-database.ts';
import { startPostgres } from '../../../world/postgres/start-postgres.ts';

it('the database of a demo is deleted for the next demo, but not while the first demo runs', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'demo-'));
  const data = join(dir, 'postgres');
  const postgres = await startPostgres({ dir: data });
  try {
    expect(() => deleteDemoDatabase(dir)).toThrow('another demo uses');
    expect(existsSync(join(data, 'PG_VERSION'))).toBe(true);
  } finally {
    await postgres.stop();
  }
  deleteDemoDatabase(dir);
  expect(existsSync(data)).toBe(false);
  await rm(dir, { recursive: true });
});
