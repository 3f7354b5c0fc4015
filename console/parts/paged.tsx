import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Loading } from './loading.tsx';
import type { Loaded } from './use-loaded.ts';

/**
 * One page of a list, with links to the next one and back to the newest.
 * @param at the address of the page after a cursor
 */
export function Paged<Value extends { next: string | null }>(about: {
  found: Loaded<Value>;
  cursor: string;
  at: (cursor: string) => string;
  isEmpty: (value: Value) => boolean;
  children: (value: Value) => ComponentChildren;
}) {
  const { found, cursor, at, isEmpty, children } = about;
  const list = useRef<HTMLDivElement>(null);
  const shownFrom = useRef(cursor);
  // The focused link was removed, so the list gets the focus.
  useEffect(() => {
    if (found.value === undefined || shownFrom.current === cursor) return;
    shownFrom.current = cursor;
    list.current?.focus();
  }, [found.value]);
  return (
    <Loading loaded={found}>
      {(value) => (
        <div ref={list} class="sheet" tabIndex={-1} aria-busy={found.isLoading}>
          {children(value)}
          <nav class="buttons" aria-label="Older and newer">
            {cursor !== '' && (
              <a class="button" href={at('')}>
                Newest
              </a>
            )}
            {value.next !== null && (
              <a class="button" href={at(value.next)}>
                {isEmpty(value) ? 'Search further back' : 'Older'}
              </a>
            )}
          </nav>
        </div>
      )}
    </Loading>
  );
}
