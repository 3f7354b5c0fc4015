/** Characters of an id that fit. A longer id is shown by its end, which differs most. */
const CHARS = 12;
const END_CHARS = 9;

/** An id. A long one is shown by its end, but copied and read out in full. */
export function ShortId({ id }: { id: string }) {
  if (id.length <= CHARS) return <span>{id}</span>;
  return (
    <span title={id}>
      <span class="short-id-head">{id.slice(0, -END_CHARS)}</span>
      <span aria-hidden="true">…</span>
      {id.slice(-END_CHARS)}
    </span>
  );
}
