import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { marksIn, MUTATIONS, withoutGuard } from '../../../tools/chaos/guards.ts';
import { readChaosArguments } from '../../../tools/chaos/read-chaos-arguments.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const read = (file: string): string => readFileSync(`${ROOT}/${file}`, 'utf8');
const marks = globSync('src/**/*.ts', { cwd: ROOT })
  .map(read)
  .flatMap((text) => marksIn(text).map((mark) => ({ mark, text })));
const mutations = Object.values(MUTATIONS);
const edits = mutations.flatMap((mutation) => Object.entries(mutation.edits));

it('each mark in the source is edited by one guard, and each edit has one mark', () => {
  expect(edits.map(([mark]) => mark).toSorted()).toEqual(marks.map(({ mark }) => mark).toSorted());
  expect(edits).toHaveLength(new Set(edits.map(([mark]) => mark)).size);
});

it('each edit changes the code below its mark, into what can be parsed', () => {
  const idle = edits.filter(([mark, edit]) => {
    const { text = '' } = marks.find((each) => each.mark === mark) ?? {};
    const edited = withoutGuard(text, mark, edit);
    return edited === text || stripTypeScriptTypes(edited) === '';
  });
  expect(idle).toEqual([]);
});

it('what notices that a guard is missing exists', () => {
  const contract = globSync('packages/provider-kit/contract/*.ts', { cwd: ROOT }).map(read).join('');
  const missing = mutations.filter(({ noticedBy: [program, ...rest] }) => {
    if (program === 'tools/simulate/simulate.ts') return !/^--seeds=\d+$/.test(rest[0] ?? '');
    if (program !== 'tools/chaos/chaos.ts') return !`${read(rest.at(-3) ?? '')}${contract}`.includes(rest.at(-1) ?? '');
    return readChaosArguments(rest).only.size === 0;
  });
  expect(missing).toEqual([]);
});
