/**
 * Characters that are not printed: control characters, and those that reorder a text
 * (https://www.unicode.org/reports/tr9/) or are invisible. With them, text from a POS or a platform could control the
 * terminal, or an id could look like another.
 */
const UNPRINTED = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Escapes such characters in one line or an id, as JSON does: `\\u202e`. */
export function printable(text: string): string {
  return text.replaceAll(UNPRINTED, (char) =>
    [...char.matchAll(/./gs)].map(([unit]) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join(''),
  );
}

/** Escapes such characters in a text of several lines, or in JSON. Newlines and tabs stay, and so does what JSON means. */
export function terminalText(text: string): string {
  return text.replaceAll(/[^\n\t]+/g, printable);
}

/** Prints a line on standard error. Parts of it may come from outside. */
export function printError(line: string): void {
  process.stderr.write(`${terminalText(line)}\n`);
}
