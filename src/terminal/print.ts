import { readFile } from 'node:fs/promises';
import { text as readAll } from 'node:stream/consumers';
import { type Command, InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { terminalText } from '../observe/terminal-text.ts';
import { NotDone } from '../core/operators/not-done.ts';

export function examples(...lines: string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}`;
}

/** Names our commands in a hint as the user must type them: in a checkout by npm, if this command was. */
export function asTyped(hint: string): string {
  const isByNpm = process.env['npm_lifecycle_event'] === 'expediter';
  return isByNpm ? hint.replaceAll(/\bexpediter (?=doctor|platform)/g, 'npm run expediter -- ') : hint;
}

/** Default and maximum number of rows in a list. */
export const LIST_LIMIT = 50;
export const LIST_LIMIT_MAX = 1000;

export function readLimit(text: string): number {
  const limit = Number(text);
  if (Number.isInteger(limit) && limit >= 1 && limit <= LIST_LIMIT_MAX) return limit;
  throw new InvalidArgumentError(`Use a number from 1 to ${LIST_LIMIT_MAX}.`);
}

const UNIT_MS = new Map(Object.entries({ s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }));
const Time = z.union([z.iso.datetime({ offset: true }), z.iso.date()]);

/** @returns milliseconds; undefined if the text is no number with one of the units, such as 30m */
export function durationIn(text: string, units: string): number | undefined {
  const [, count, unit = ''] = /^(\d{1,5})([smhd])$/.exec(text) ?? [];
  return units.includes(unit) && count !== undefined ? Number(count) * (UNIT_MS.get(unit) ?? 0) : undefined;
}

/**
 * Reads a time, or a duration before or after now: 3d, 2h, 30m, 45s.
 * @throws InvalidArgumentError if the text is neither, or if `when` is `future` and the time has passed
 */
export function readTime(text: string, when: 'past' | 'future'): Date {
  const distance = durationIn(text, 'smhd');
  const at =
    distance === undefined
      ? Date.parse(Time.safeParse(text).data ?? '')
      : Date.now() + (when === 'past' ? -distance : distance);
  if (Number.isNaN(at)) {
    const example = when === 'past' ? 'a while ago such as 3d, 2h or 30m' : 'a while such as 90d, 12h or 30m';
    throw new InvalidArgumentError(`Use ${example}, or a time such as 2027-01-31T18:00:00Z.`);
  }
  if (when === 'future' && at <= Date.now()) throw new InvalidArgumentError('The time must be in the future.');
  return new Date(at);
}

/** Reads a duration in whole minutes: 30m, 2h, 1d. */
export function readMinutes(text: string): number {
  const duration = durationIn(text, 'mhd');
  if (duration === undefined) throw new InvalidArgumentError('Use a duration such as 30m, 2h or 1d.');
  return duration / 60_000;
}

/** The help text of an option that `readPast` reads. */
export const PAST = 'a while ago (3d, 2h, 30m, 45s), or a time (2027-01-31T18:00:00Z)';

export function readPast(text: string): Date {
  return readTime(text, 'past');
}

export function readFuture(text: string): string {
  return readTime(text, 'future').toISOString();
}

/** The help text of an option that `readList` reads. */
export const LIST = 'several separated by commas, or repeat the option';

export function readList(text: string, before: readonly string[] = []): string[] {
  return [...before, ...text.split(',').map((each) => each.trim())];
}

/** Reads a file, or standard input for `-`. No error message quotes it, because it may contain credentials. */
export async function readText(option: string, file: string): Promise<string> {
  const reading = file === '-' ? readAll(process.stdin) : readFile(file, 'utf8');
  return reading.catch(({ code = 'unknown' }: NodeJS.ErrnoException) => {
    throw new NotDone(400, `${option}: the file cannot be read (${code}).`);
  });
}

/** Reads JSON like `readText`. */
export async function readJson(option: string, file: string, hint = ''): Promise<unknown> {
  const json = await readText(option, file);
  try {
    return JSON.parse(json);
  } catch {
    throw new NotDone(400, `${option}: this is not valid JSON.${hint}`);
  }
}

type Cell = string | number | boolean | Date | null | undefined;

/** Prints JSON for programs, or text for people. */
export function print(command: Command, value: unknown, forPeople: string): void {
  const { json } = command.optsWithGlobals<{ json?: true }>();
  process.stdout.write(`${terminalText(json ? JSON.stringify(value) : forPeople)}\n`);
}

/** Formats one line per row under the names of its columns, or `none` if there are no rows. */
export function table(rows: readonly Record<string, Cell>[], none = ''): string {
  const names = Object.keys(rows[0] ?? {});
  if (names.length === 0) return none;
  return align([names, ...rows.map((row) => names.map((name) => textOf(row[name])))]);
}

/** Makes the rows of a table: each has the same columns. */
export function tableOf<Row>(none: string, rows: readonly Row[], columns: (row: Row) => Record<string, Cell>): string {
  return table(rows.map(columns), none);
}

/** Formats one line per fact, without facts that have no value. */
export function facts(about: Record<string, Cell>): string {
  return align(Object.entries(about).flatMap(([name, value]) => (textOf(value) === '' ? [] : [[name, textOf(value)]])));
}

export function time(at: string | Date | null): string {
  return at === null
    ? ''
    : new Date(at)
        .toISOString()
        .replace('T', ' ')
        .replace(/\.\d+Z$/, 'Z');
}

/** Puts an empty line between the parts. A part that is empty or false is left out. */
export function sections(...parts: (string | false | undefined)[]): string {
  return parts.filter(Boolean).join('\n\n');
}

/** Puts a title above a text. An empty text stays empty. */
export function titled(title: string, words: string): string {
  return words === '' ? '' : `${title}\n${words}`;
}

export function titledTable<Row>(
  title: string,
  rows: readonly Row[],
  columns: (row: Row) => Record<string, Cell>,
): string {
  return titled(title, tableOf('', rows, columns));
}

export function titledFacts(title: string, about: Record<string, Cell>): string {
  return titled(title, facts(about));
}

function textOf(cell: Cell): string {
  if (cell === null || cell === undefined) return '';
  if (cell instanceof Date) return time(cell);
  if (typeof cell === 'boolean') return cell ? 'yes' : 'no';
  // A cell must stay on one line.
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
