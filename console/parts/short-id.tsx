/** Characters of an id that there is room for. Of a longer one the end tells it from others. */
const CHARS = 12;
const END_CHARS = 9;

/** An id: the whole of it for who copies it or has it read out, and the end of a long one for the eye. */
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
