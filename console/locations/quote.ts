/** A word without special characters of any shell. */
const PLAIN = /^[\w.][\w.,:@/+-]*$/;
/** Control and invisible characters, except the line break, which is harmless between quotes. */
const UNTYPEABLE = /((?:[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}])+)/u;

/** Quotes any text as one word for a POSIX shell, safe to paste into a terminal. */
export function quote(word: string): string {
  if (PLAIN.test(word)) return word;
  const parts = word.split(UNTYPEABLE).map((part, nth) => (nth % 2 === 1 ? printed(part) : quoted(part)));
  return parts.join('') || "''";
}

function quoted(part: string): string {
  return part === '' ? '' : `'${part.replaceAll("'", String.raw`'\''`)}'`;
}

function printed(part: string): string {
  const octal = [...new TextEncoder().encode(part)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`);
  return `"$(printf '${octal.join('')}')"`;
}
