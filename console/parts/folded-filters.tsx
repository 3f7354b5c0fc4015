import type { ComponentChildren } from 'preact';
import './lists.css';
import { useNarrow } from './use-narrow.ts';

type AboutFoldedFilters = {
  label: string;
  filters: Readonly<Record<string, string>>;
  /** The input that is never folded. */
  first?: ComponentChildren;
  children: ComponentChildren;
};

/** The filters of a list. On a phone they are folded, so that the list comes first. */
export function FoldedFilters({ label, filters, first, children }: AboutFoldedFilters) {
  const isNarrow = useNarrow();
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
