import { useLocation } from 'preact-iso';
import { useCallback } from 'preact/hooks';
import { query } from '../api.ts';

/**
 * The filters of a page, which live in its address: a link can be shared, and back takes the last one off.
 * @returns each by its name, empty when it is not set, and what changes some of them: `typed` for what changes with every
 * key, of which the browser keeps no history
 */
export function useFilters<Name extends string>(
  ...names: Name[]
): [filters: Record<Name, string>, change: (some: Partial<Record<Name, string>>, how?: 'typed') => void] {
  const { path, query: asked, route } = useLocation();
  const filters = Object.fromEntries(names.map((name) => [name, asked[name] ?? ''])) as Record<Name, string>;
  const change = useCallback(
    (some: Partial<Record<Name, string>>, how?: 'typed') =>
      route(path + query({ ...filters, ...some }), how === 'typed'),
    [path, ...names.map((name) => filters[name])],
  );
  return [filters, change];
}
