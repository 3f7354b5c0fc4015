import { useLocation } from 'preact-iso';
import { useCallback } from 'preact/hooks';
import { query } from '../api.ts';

/**
 * The filters of a page, stored in its address: links can be shared, and Back removes the last filter.
 * @returns each filter by name, empty if not set, and a function that changes some filters. `typed` changes are not
 *   added to the history.
 */
export function useFilters<Name extends string>(
  ...names: Name[]
): [filters: Record<Name, string>, change: (some: Partial<Record<Name, string>>, how?: 'typed') => void] {
  const { path, query: chosen, route } = useLocation();
  const filters = Object.fromEntries(names.map((name) => [name, chosen[name] ?? ''])) as Record<Name, string>;
  const change = useCallback(
    (some: Partial<Record<Name, string>>, how?: 'typed') =>
      route(path + query({ ...filters, ...some }), how === 'typed'),
    [path, ...names.map((name) => filters[name])],
  );
  return [filters, change];
}
