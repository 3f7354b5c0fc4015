/** The request's headers, names in lower case. Repeated ones are joined as RFC 9110 section 5.3 says. */
export function flattenHeaders(rawHeaders: readonly string[]): Record<string, string> {
  // An object that can hold a header named `__proto__`.
  const headers = Object.create(null) as Record<string, string>;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]?.toLowerCase() ?? '';
    const value = rawHeaders[i + 1] ?? '';
    const before = headers[name];
    headers[name] = before === undefined ? value : `${before}, ${value}`;
  }
  return headers;
}
