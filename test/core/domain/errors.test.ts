import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import * as ours from '../../../src/core/domain/errors.ts';

/** The same classes, as a provider's own package brings them. */
let theirs: typeof ours;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'errors-'));
  const copy = join(folder, 'errors.ts');
  await copyFile(new URL('../../../src/core/domain/errors.ts', import.meta.url), copy);
  theirs = (await import(pathToFileURL(copy).href)) as typeof ours;
});
afterAll(() => rm(folder, { recursive: true }));

describe('errors from another copy of the package', () => {
  it('are instanceof our class of the same kind, and of no other class', () => {
    const thrown = [
      new theirs.TryAgain('busy', { sent: true }),
      new theirs.NeedsOperator('wrong key'),
      new theirs.GiveUp('closed', { reason: 'The restaurant is closed.' }),
      new theirs.Poison('no JSON'),
      new theirs.NotAuthentic('no signature'),
    ];
    const kinds = [ours.TryAgain, ours.NeedsOperator, ours.GiveUp, ours.Poison, ours.NotAuthentic];
    expect(kinds.some((kind, nth) => kind === thrown[nth]?.constructor)).toBe(false);
    expect(thrown.map((error) => kinds.map((kind) => error instanceof kind))).toEqual(
      kinds.map((kind) => kinds.map((other) => other === kind)),
    );
  });

  it('are distinguished by instanceof from other thrown values', () => {
    for (const other of [new Error('TryAgain'), { name: 'TryAgain' }, 'TryAgain', null, undefined]) {
      expect(other instanceof ours.TryAgain).toBe(false);
    }
  });
});
