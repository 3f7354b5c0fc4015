/** What no shell gives a meaning to, wherever it stands in a word. */
const PLAIN = /^[\w.][\w.,:@/+-]*$/;
/** What a terminal obeys instead of taking it down, and what nobody sees. A line break it takes, between quotes. */
const UNTYPEABLE = /((?:[^\P{Cc}\n]|[\p{Cf}\p{Zl}\p{Zp}])+)/u;

/** One word for a POSIX shell, whatever it holds, that can be pasted into a terminal. */
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
