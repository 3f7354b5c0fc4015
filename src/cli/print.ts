import type { Command } from 'commander';

type Cell = string | number | boolean | Date | null | undefined;

/** Prints JSON for programs, text for people. */
export function print(command: Command, value: unknown, forPeople: string): void {
  const { json } = command.optsWithGlobals<{ json?: true }>();
  process.stdout.write(`${json ? escaped(value) : forPeople}\n`);
}

/** Escapes the control characters that JSON leaves as they are and that steer a terminal. */
function escaped(value: unknown): string {
  return JSON.stringify(value).replaceAll(/[\u007f-\u009f]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
}

/** Formats one line per row under the names of its columns, or `none` if there are no rows. */
export function table(rows: readonly Record<string, Cell>[], none: string): string {
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

function textOf(cell: Cell): string {
  if (cell === null || cell === undefined) return '';
  if (cell instanceof Date) return time(cell);
  if (typeof cell === 'boolean') return cell ? 'yes' : 'no';
  // Text from a POS must not steer the terminal.
  return String(cell).replaceAll(/\p{Cc}/gu, ' ');
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
