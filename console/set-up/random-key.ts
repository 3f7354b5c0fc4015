/** A key for `Idempotency-Key`. `crypto.randomUUID` does not exist on a page by plain http. */
export function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}
