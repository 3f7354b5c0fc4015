/** SQL of a JSON object. @param fields the SQL of each field's value */
export function jsonObject(fields: Record<string, string>): string {
  return `json_build_object(${Object.entries(fields)
    .map(([field, sql]) => `'${field}', ${sql}`)
    .join(', ')})`;
}
