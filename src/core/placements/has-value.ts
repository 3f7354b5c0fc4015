/** True if there is anything but nulls, empty lists and names of types. */
export function hasValue(value: unknown): boolean {
  if (value === null || value === undefined) return false;
  if (Array.isArray(value)) return value.some(hasValue);
  if (typeof value !== 'object') return true;
  const fields = Object.entries(value);
  return fields.length === 0 || fields.some(([key, field]) => key !== '__typename' && hasValue(field));
}
