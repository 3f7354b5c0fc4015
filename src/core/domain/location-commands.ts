/** Commands of the command line. Each runs unchanged in a POSIX shell. */
export type Commands = Record<'connect' | 'changeSettings' | 'putSettings' | 'schema', string>;

export function commandsOf({ locationId, integration }: { locationId: string; integration: string }): Commands {
  const argument = locationId.startsWith('-') ? `-- ${quote(locationId)}` : quote(locationId);
  const ofLocation = option('--location', locationId);
  return {
    connect: `expediter provider connect ${argument}`,
    changeSettings: `expediter location change --settings - ${argument} < settings.json`,
    putSettings: `expediter location put ${ofLocation} ${option('--integration', integration)} --settings - < settings.json`,
    schema: `expediter provider schema ${quote(integration)}`,
  };
}

/** Writes an option. A value that begins with `-` follows a `=`, because it would otherwise be read as an option. */
function option(name: string, value: string): string {
  return value.startsWith('-') ? `${name}=${quote(value)}` : `${name} ${quote(value)}`;
}

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
