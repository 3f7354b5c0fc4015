/** What a key of each kind may be used for. */
const ALGORITHMS = new Map<string, readonly string[]>([
  ['EC P-256', ['ES256']],
  // One algorithm, as RFC 8037 and RFC 9864 call it.
  ['OKP Ed25519', ['EdDSA', 'Ed25519']],
  ['RSA', ['RS256']],
  ['oct', ['HS256']],
]);
export const KEY_KINDS: readonly string[] = [...ALGORITHMS.keys()];

/** @returns the algorithms that a JWK's kind is for; undefined for a kind that we do not take */
export function algorithmsOf({ kty, crv }: Record<string, unknown>): readonly string[] | undefined {
  return ALGORITHMS.get(typeof crv === 'string' ? `${String(kty)} ${crv}` : String(kty));
}
