import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import './lists.css';

const NARROW = matchMedia('(max-width: 40rem)');

/** The filters of a list. On a phone they are folded, so that the list comes first. */
export function FoldedFilters({
  label,
  filters,
  first,
  children,
}: {
  label: string;
  filters: Readonly<Record<string, string>>;
  /** The input that is never folded. */
  first?: ComponentChildren;
  children: ComponentChildren;
}) {
  const [isNarrow, setNarrow] = useState(NARROW.matches);
  useEffect(() => {
    const update = (): void => setNarrow(NARROW.matches);
    NARROW.addEventListener('change', update);
    return () => NARROW.removeEventListener('change', update);
  }, []);
  const count = Object.values(filters).filter((value) => value !== '').length;
  return (
    <search class="filters" aria-label={label}>
      {first}
      {isNarrow ? (
        <details class="folded">
          <summary>Filters{count > 0 && ` (${count} set)`}</summary>
          <div class="filters">{children}</div>
        </details>
      ) : (
        children
      )}
    </search>
  );
}
