/** A key for `Idempotency-Key`. `crypto.randomUUID` does not exist on a page by plain http. */
export function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** A secret that we choose ourselves. @param prefix what it begins with */
export function randomSecret(prefix: string): string {
  return prefix + btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))));
}
