import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { marksIn, MUTATIONS, withoutGuard } from '../../chaos/guards.ts';
import { readChaosArguments } from '../../chaos/read-chaos-arguments.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string): string => readFileSync(`${ROOT}/${file}`, 'utf8');
const sources = globSync('src/**/*.ts', { cwd: ROOT }).map(read);
const mutations = Object.values(MUTATIONS);

it('each mark in the source is edited by one guard, and each edit of a guard has its mark', () => {
  const marks = sources.flatMap(marksIn).toSorted();
  expect(marks).toHaveLength(new Set(marks).size);
  expect(mutations.flatMap(({ edits }) => Object.keys(edits)).toSorted()).toEqual(marks);
});

it('each edit changes the code below its mark', () => {
  const edits = mutations.flatMap((mutation) => Object.entries(mutation.edits));
  const idle = edits.filter(([mark, edit]) => sources.every((text) => withoutGuard(text, mark, edit) === text));
  expect(idle).toEqual([]);
});

it('what notices that a guard is missing exists', () => {
  const contract = globSync('test/providers/contract/*.ts', { cwd: ROOT }).map(read).join('');
  const missing = mutations.filter(({ noticedBy: [program, ...rest] }) => {
    if (program !== 'chaos/chaos.ts') return !`${read(rest.at(-3) ?? '')}${contract}`.includes(rest.at(-1) ?? '');
    return readChaosArguments(rest).only.size === 0;
  });
  expect(missing).toEqual([]);
});
