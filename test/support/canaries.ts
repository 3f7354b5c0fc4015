/** Secrets that are looked for, and where. Nothing of `src` is used to find them. */
import type pg from 'pg';

/** A text in the forms in which it may leave: as it is, percent-encoded, escaped as in JSON, in base64 and in hex. */
export function disguisesOf(text: string): Record<string, string> {
  const bytes = Buffer.from(text);
  const percent = [...bytes].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
  return {
    plain: text,
    percent,
    'percent where it must be': encodeURIComponent(text),
    'percent twice': encodeURIComponent(percent),
    JSON: JSON.stringify(text).slice(1, -1),
    'JSON twice': JSON.stringify(JSON.stringify(text)).slice(3, -3),
    base64: bytes.toString('base64').replaceAll('=', ''),
    base64url: bytes.toString('base64url'),
    hex: bytes.toString('hex'),
  };
}

/** Base64 of a text at each place where it may begin in a longer one, without the characters that its neighbours change. */
function base64Within(text: string): string[] {
  return [0, 1, 2].flatMap((skip) => {
    const bytes = Buffer.concat([Buffer.alloc(skip), Buffer.from(text)]);
    const [from, to] = [Math.ceil((skip * 8) / 6), Math.floor((bytes.length * 8) / 6)];
    return [bytes.toString('base64').slice(from, to), bytes.toString('base64url').slice(from, to)];
  });
}

/** Finds canaries: letters and digits, so that no form but those looked for here can be another. */
export function canaryFinder(canaries: Iterable<string>): (text: string) => string[] {
  const forms = [...canaries].flatMap((canary) => {
    if (!/^\w{8,}$/.test(canary)) throw new Error('a canary is 8 or more letters and digits');
    return [canary, ...base64Within(canary), Buffer.from(canary).toString('hex')].map(
      (form) => [canary, form] as const,
    );
  });
  return (text) => {
    let read = text;
    for (let level = 0; level < 3; level += 1) {
      read = read.replaceAll(/%([0-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    }
    const lower = read.toLowerCase();
    return [
      ...new Set(
        forms.filter(([, form]) => read.includes(form) || lower.includes(form.toLowerCase())).map(([canary]) => canary),
      ),
    ];
  };
}

/** Every row of every table, as JSON in which bytes are hex. @param pool of the role that owns the tables */
export async function allRows(pool: Pick<pg.Pool, 'query'>): Promise<{ place: string; text: string }[]> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `SELECT format('%I.%I', n.nspname, c.relname) AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`,
  );
  const found: { place: string; text: string }[] = [];
  for (const { name } of tables) {
    const { rows } = await pool.query<{ text: string }>(`SELECT to_jsonb(t)::text AS text FROM ${name} t`);
    for (const { text } of rows) found.push({ place: name, text });
  }
  return found;
}
