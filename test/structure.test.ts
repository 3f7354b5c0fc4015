import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { registry } from '../src/providers/index.ts';

const SRC = new URL('../src/', import.meta.url).pathname;
const FUTURE = ['hubrise', 'square', 'lightspeed', 'deliverect', 'toast', 'clover', 'otter', 'olo'];

function filesIn(folder: string): { file: string; text: string }[] {
  return readdirSync(join(SRC, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => ({ file: join(folder, file), text: readFileSync(join(SRC, folder, file), 'utf8') }));
}

const importsOf = (text: string): string[] =>
  [...text.matchAll(/(?:from|import\()\s*'([^']+)'/g)].map((match) => match[1] ?? '');

describe('the structure', () => {
  it('core imports nothing from the doors or the providers', () => {
    const files = filesIn('core');
    expect(files.length).toBeGreaterThan(10);
    for (const { file, text } of files) {
      expect(
        importsOf(text).filter((path) => path.startsWith('.') && !path.startsWith('./')),
        file,
      ).toEqual([]);
    }
  });

  it('core names no POS', () => {
    const names = [...registry.keys(), ...FUTURE];
    for (const { file, text } of filesIn('core')) {
      for (const name of names) expect(text.toLowerCase(), file).not.toMatch(new RegExp(`\\b${name}\\b`));
    }
  });

  it('doors and providers know the core, and not each other', () => {
    for (const { file, text } of filesIn('http'))
      expect(
        importsOf(text).filter((path) => path.includes('providers')),
        file,
      ).toEqual([]);
    for (const { file, text } of filesIn('providers'))
      expect(
        importsOf(text).filter((path) => path.includes('http/')),
        file,
      ).toEqual([]);
  });

  it('only the registry names the providers', () => {
    for (const { file, text } of [...filesIn('.')].filter(({ file }) => !file.startsWith('providers'))) {
      expect(
        importsOf(text).filter((path) => /providers\/(?!index\.ts)/.test(path)),
        file,
      ).toEqual([]);
    }
  });

  it('.env.example holds every variable of the environment, and no other', async () => {
    const { CONFIG_NAMES } = await import('../src/config.ts');
    const example = readFileSync(new URL('../.env.example', import.meta.url), 'utf8');
    const names = [...example.matchAll(/^#? ?([A-Z_]+)=/gm)].map((match) => match[1]);
    expect(new Set(names)).toEqual(new Set(CONFIG_NAMES));
    expect(names).toHaveLength(CONFIG_NAMES.length);
  });
});
