import type { Chosen } from './use-chosen.ts';

/** The checkbox that chooses a row of a list, or all rows. */
export function Pick({ chosen, ids, label }: { chosen: Chosen; ids: readonly string[]; label: string }) {
  return (
    <input
      type="checkbox"
      class="pick"
      aria-label={label}
      checked={ids.length > 0 && ids.every((id) => chosen.ids.has(id))}
      onChange={({ currentTarget }) => chosen.set(ids, currentTarget.checked)}
    />
  );
}
