const CAPITALS = new Set(['url', 'id', 'guid', 'hmac', 'pos', 'sku']);

/** Writes the name of a setting in words: `ordersUrl` as `Orders URL`. */
export function labelOf(name: string): string {
  const words = name
    .replaceAll('_', ' ')
    .replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, ' ')
    .split(' ');
  return words
    .map((word, nth) => {
      const lower = word.toLowerCase();
      if (CAPITALS.has(lower)) return lower.toUpperCase();
      if (lower === 'oauth') return 'OAuth';
      if (lower.endsWith('s') && CAPITALS.has(lower.slice(0, -1))) return `${lower.slice(0, -1).toUpperCase()}s`;
      return nth === 0 ? lower.charAt(0).toUpperCase() + lower.slice(1) : lower;
    })
    .join(' ');
}
