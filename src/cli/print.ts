import type { Command } from 'commander';
import { terminalJson, terminalText } from '../observe/terminal-text.ts';

type Cell = string | number | boolean | Date | null | undefined;

/** Prints JSON for programs, text for people. */
export function print(command: Command, value: unknown, forPeople: string): void {
  const { json } = command.optsWithGlobals<{ json?: true }>();
  process.stdout.write(`${json ? terminalJson(JSON.stringify(value)) : terminalText(forPeople)}\n`);
}

/** Formats one line per row under the names of its columns, or `none` if there are no rows. */
export function table(rows: readonly Record<string, Cell>[], none = ''): string {
  const names = Object.keys(rows[0] ?? {});
  if (names.length === 0) return none;
  return align([names, ...rows.map((row) => names.map((name) => textOf(row[name])))]);
}

/** Formats one line per fact. Facts without a value are left out. */
export function facts(about: Record<string, Cell>): string {
  return align(Object.entries(about).flatMap(([name, value]) => (textOf(value) === '' ? [] : [[name, textOf(value)]])));
}

/** Formats a time in UTC, to the second. */
export function time(at: string | Date | null): string {
  return at === null
    ? ''
    : new Date(at)
        .toISOString()
        .replace('T', ' ')
        .replace(/\.\d+Z$/, 'Z');
}

/** Puts parts below each other, without those that are empty. */
export function sections(...parts: string[]): string {
  return parts.filter((part) => part !== '').join('\n\n');
}

/** Puts a title over words. Empty if there are none. */
export function titled(title: string, words: string): string {
  return words === '' ? '' : `${title}\n${words}`;
}

function textOf(cell: Cell): string {
  if (cell === null || cell === undefined) return '';
  if (cell instanceof Date) return time(cell);
  if (typeof cell === 'boolean') return cell ? 'yes' : 'no';
  // A cell is one line.
  return terminalText(String(cell)).replaceAll(/[\n\t]/g, ' ');
}

function align(lines: readonly string[][]): string {
  const widths = lines[0]?.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0))) ?? [];
  return lines
    .map((line) =>
      line
        .map((text, column) => text.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
