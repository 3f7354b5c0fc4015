import { sign } from '../../../src/core/domain/standard-webhooks.ts';
import {
  MARKER,
  NOT_JSON,
  SECRET,
  UNMATCHED,
  dropped,
  statusText,
  toWebhook,
  type Expected,
  type HostileInput,
} from './hostile-input.ts';

const STRANGER = `whsec_${Buffer.alloc(24, 'anonymous').toString('base64')}`;

type Signed = { id: string; timestamp: string; signature: string };

/**
 * Webhooks of a location that signs, wrong as only the wire can make them, and one of each other kind: the translator's
 * own tests have the rest.
 */
export function signatureInputs(): HostileInput[] {
  const body = statusText({});
  const at = (
    name: string,
    expected: Expected,
    wrong: (right: Signed) => Partial<Signed> | string[],
    sent = body,
  ): HostileInput => {
    const lines = (): string => {
      const timestamp = String(Math.floor(Date.now() / 1000));
      const right = { id: 'm-1', timestamp, signature: sign([SECRET], 'm-1', timestamp, body) };
      const given = wrong(right);
      const signed = Array.isArray(given)
        ? given
        : Object.entries({ ...right, ...given }).map(([part, value]) => `webhook-${part}: ${value}`);
      return ['Host: x', `Cookie: ${MARKER}`, ...signed].join('\r\n');
    };
    const path = '/webhook/standard/signed?token=<signedToken>';
    return toWebhook('signatures')(name, expected, { path, lines: [lines], body: sent });
  };
  const forged = dropped('not authentic: no signature in webhook-signature is right');
  const missing = (header: string): Expected => dropped(`not authentic: the header ${header} is missing`);

  return [
    at('right', UNMATCHED, () => ({})),
    at('right, among a hundred others', UNMATCHED, (right) => ({
      signature: `${'v1,AAAA '.repeat(100)}${right.signature}`,
    })),
    at(
      'right, of a body that is no JSON',
      dropped(NOT_JSON),
      ({ timestamp }) => ({ signature: sign([SECRET], 'm-1', timestamp, MARKER) }),
      MARKER,
    ),
    at('none at all', missing('webhook-id'), () => []),
    at('an empty id', missing('webhook-id'), () => ({ id: '' })),
    at('an empty signature', missing('webhook-signature'), () => ({ signature: '' })),
    at('of a stranger', forged, ({ timestamp }) => ({ signature: sign([STRANGER], 'm-1', timestamp, body) })),
    at('of no body', forged, () => ({}), ''),
    at('where id and timestamp share a dot', forged, ({ timestamp }) => ({ id: `m-1.${timestamp}` })),
    ...['v0', '', ' v1', 'v1,v1'].map((version) =>
      at(`of the version "${version}"`, version === ' v1' ? UNMATCHED : forged, ({ signature }) => ({
        signature: `${version},${signature.slice('v1,'.length)}`,
      })),
    ),
    at('cut in half', forged, ({ signature }) => ({ signature: signature.slice(0, 24) })),
    at('commas', forged, () => ({ signature: ',,,,' })),
    at('thousands', forged, () => ({ signature: 'v1,AAAA '.repeat(1_500) })),
    at('one of 12 kB', forged, () => ({ signature: `v1,${'A'.repeat(12_000)}` })),
    at('bytes that are no ASCII', forged, () => ({ signature: `v1,${'\xe9'.repeat(44)}` })),
    at('bytes of the right length when told as UTF-8', forged, () => ({ signature: `v1,${'\xe9'.repeat(22)}` })),
    at('a secret instead', forged, () => ({ signature: `v1,${MARKER}` })),
    at('an id of 12 kB', forged, () => ({ id: MARKER.repeat(2_000) })),
    at('two signatures in two headers, the right one first', forged, ({ id, timestamp, signature }) => [
      `webhook-id: ${id}`,
      `webhook-timestamp: ${timestamp}`,
      `webhook-signature: ${signature}`,
      'webhook-signature: v1,AAAA',
    ]),
  ];
}
