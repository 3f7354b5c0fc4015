import { printable } from '../../src/observe/terminal-text.ts';

/** Characters of an id that fit. Of a longer id, only the end is shown, because ids differ most there. */
const CHARS = 12;
const END_CHARS = 9;

/** An id. Of a long id, only the end is shown, but the whole id is copied and read out. What is not printable is escaped. */
export function ShortId({ id: raw }: { id: string }) {
  const id = printable(raw);
  if (id.length <= CHARS) return <span>{id}</span>;
  return (
    <span title={id}>
      <span class="short-id-head">{id.slice(0, -END_CHARS)}</span>
      <span class="short-id-end">{id.slice(-END_CHARS)}</span>
    </span>
  );
}
