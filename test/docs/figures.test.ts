/** Measured figures stand in tools/bench/report/figures.json, and pages that quote them are held to it. */
import { globSync } from 'node:fs';
import { expect, it } from 'vitest';
import { readRuns } from '../../tools/bench/report/record-figures.ts';
import { figureChart, KNOWN, quotable } from '../../tools/build/list-figures.ts';
import { read, ROOT } from '../support/read-project.ts';

/** A figure's name in a comment, and the number that follows it. */
const QUOTE = /<!-- figure: (.*?) -->(-?\d+(?:,\d{3})*(?:\.\d+)?)?/g;

it('each figure is recorded once, in its unit, with the day, the machine and the command of its run', () => {
  const runs = readRuns();
  for (const { date, machine, command } of runs) {
    expect({ date, machine, command }).toEqual({
      date: expect.stringMatching(/^20\d\d-\d\d-\d\d$/),
      machine: expect.stringContaining('Postgres'),
      command: expect.stringMatching(/^npm run bench(?::peers)?(?: |$)/),
    });
  }
  const all = runs.flatMap(({ figures }) => Object.entries(figures));
  for (const [name, { unit }] of all) expect(unit, name).toBe(KNOWN[name]?.unit?.trim());
  expect(
    all.filter(([name], i) => !Object.hasOwn(KNOWN, name) || all.findIndex(([each]) => each === name) < i),
  ).toEqual([]);
});

// Where it is not: npm run docs
it('docs/benchmark.svg equals the chart of the recorded figures', () => {
  expect(read('docs/benchmark.svg')).toBe(figureChart());
});

it('a number on a page equals the recorded figure that the comment before it names', () => {
  const numbers = quotable();
  for (const page of globSync('{*.md,docs/**/*.md,deploy/**/*.md}', { cwd: ROOT })) {
    for (const [, name = '', said] of read(page).matchAll(QUOTE)) {
      expect(said, `${page}: ${name}`).toBe(numbers.get(name) ?? 'no such figure');
    }
    // At the beginning of a line, a comment would make all of it HTML.
    expect(read(page), page).not.toMatch(/^ *(?:[-*] )?<!-- figure:/m);
  }
});
