import type { ComponentChildren } from 'preact';
import './lists.css';
import { useNarrow } from './use-narrow.ts';

type AboutFoldedFilters = {
  label: string;
  filters: Readonly<Record<string, string>>;
  /** The input that is never folded. */
  first?: ComponentChildren;
  /** The address of the page without a filter. */
  clear?: string;
  children: ComponentChildren;
};

/** The filters of a list. On a phone they are folded, so that the list comes first. */
export function FoldedFilters({ label, filters, first, clear, children }: AboutFoldedFilters) {
  const isNarrow = useNarrow();
  const count = Object.values(filters).filter((value) => value !== '').length;
  const inputs = (
    <>
      {children}
      {clear !== undefined && count > 0 && (
        <a class="button" href={clear}>
          Clear
        </a>
      )}
    </>
  );
  return (
    <search class="filters" aria-label={label}>
      {first}
      {isNarrow ? (
        <details class="folded">
          <summary>Filters{count > 0 && ` (${count} set)`}</summary>
          <div class="filters">{inputs}</div>
        </details>
      ) : (
        inputs
      )}
    </search>
  );
}
