const CAPITALS = new Set(['url', 'id', 'guid', 'hmac', 'pos', 'sku']);

/** Fields of a location whose label says more than their name. */
const LABELS = new Map([
  ['integration', 'POS'],
  ['backOfficeUrl', 'Back office of the POS'],
  ['email', 'E-mail'],
  ['via', 'Told about orders'],
  ['afterMinutes', 'After, in minutes'],
]);

/** What people call a field or a setting, in forms, previews and the audit: `ordersUrl` is `Orders URL`. */
export function labelOf(name: string): string {
  const label = LABELS.get(name);
  if (label !== undefined) return label;
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
