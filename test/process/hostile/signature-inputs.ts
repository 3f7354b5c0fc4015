import { sign } from '../../../src/providers/standard/sign.ts';
import {
  MARKER,
  NOT_JSON,
  UNMATCHED,
  dropped,
  statusText,
  toWebhook,
  type Expected,
  type HostileInput,
  type Say,
} from './hostile-input.ts';
import { SECRET, STRANGER } from './secrets.ts';

type Signed = { id?: string | undefined; timestamp?: string | undefined; signature?: string | undefined };

/** Webhooks of a location that signs, with every part of the signature wrong in every way. */
export function signatureInputs(): HostileInput[] {
  const kind = 'signatures';
  const body = statusText({});
  const at = (
    name: string,
    expected: Expected,
    wrong: (right: Required<Signed>) => Signed | string[],
    sent = body,
  ): HostileInput => {
    const lines = (): string[] => {
      const timestamp = String(Math.floor(Date.now() / 1000));
      const right = { id: 'm-1', timestamp, signature: sign([SECRET], 'm-1', timestamp, body) };
      const given = wrong(right);
      if (Array.isArray(given)) return given;
      const { id, timestamp: time, signature } = { ...right, ...given };
      return Object.entries({ 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': signature }).flatMap(
        ([header, value]) => (value === undefined ? [] : [`${header}: ${value}`]),
      );
    };
    const line: Say = () => Buffer.from(['Host: x', `Cookie: ${MARKER}`, ...lines()].join('\r\n'), 'latin1');
    return toWebhook(
      kind,
      name,
      { path: ({ signedToken }) => `/webhook/standard/signed?token=${signedToken}`, lines: [line], body: sent },
      { expected },
    );
  };
  const forged = dropped('not authentic: no signature in webhook-signature is ours');
  const uncounted = dropped('not authentic: webhook-timestamp is not a count of seconds');
  const missing = (header: string): Expected => dropped(`not authentic: the header ${header} is missing`);
  const resigned = (timestamp: string): Signed => ({ timestamp, signature: sign([SECRET], 'm-1', timestamp, body) });
  const inSeconds = (from: number): string => String(Math.floor(Date.now() / 1000) + from);
  const value = (signature: string | undefined): string => (signature ?? '').slice('v1,'.length);

  return [
    at('right', UNMATCHED, () => ({})),
    at('right, among a hundred others', UNMATCHED, ({ signature }) => ({
      signature: `${'v1,AAAA '.repeat(100)}${signature}`,
    })),
    at(
      'right, of a body that is no JSON',
      dropped(NOT_JSON),
      ({ timestamp }) => ({ signature: sign([SECRET], 'm-1', timestamp ?? '', MARKER) }),
      MARKER,
    ),
    at('none at all', missing('webhook-id'), () => []),
    at('no id', missing('webhook-id'), () => ({ id: undefined })),
    at('an empty id', missing('webhook-id'), () => ({ id: '' })),
    at('no timestamp', missing('webhook-timestamp'), () => ({ timestamp: undefined })),
    at('an empty timestamp', missing('webhook-timestamp'), () => ({ timestamp: '' })),
    at('no signature', missing('webhook-signature'), () => ({ signature: undefined })),
    at('an empty signature', missing('webhook-signature'), () => ({ signature: '' })),
    at('headers of another scheme', missing('webhook-id'), ({ signature }) => [
      `svix-id: m-1`,
      `svix-signature: ${signature}`,
    ]),
    ...['NaN', '-1', '1e9', '1.5', '\xb9\xb2\xb3', '1,2', '9'.repeat(13), '9'.repeat(5_000), MARKER, '+1'].map(
      (timestamp) => at(`the timestamp ${timestamp.slice(0, 20)}`, uncounted, () => resigned(timestamp)),
    ),
    ...[-301, -1e9].map((from) =>
      at(`${-from} s old`, dropped('not authentic: webhook-timestamp is over 300 s old'), () =>
        resigned(inSeconds(from - 2)),
      ),
    ),
    ...[301, 1e10].map((from) =>
      at(`${from} s ahead`, dropped('not authentic: webhook-timestamp is over 300 s ahead'), () =>
        resigned(inSeconds(from + 2)),
      ),
    ),
    ...['0', '1', '000000000001'].map((timestamp) =>
      at(`the timestamp ${timestamp}`, dropped('not authentic: webhook-timestamp is over 300 s old'), () =>
        resigned(timestamp),
      ),
    ),
    ...[0, 21, 42].map((place) =>
      at(`another letter at ${place}`, forged, ({ signature }) => {
        const right = value(signature);
        return { signature: `v1,${right.slice(0, place)}${right[place] === 'A' ? 'B' : 'A'}${right.slice(place + 1)}` };
      }),
    ),
    at('of a stranger', forged, ({ timestamp }) => ({ signature: sign([STRANGER], 'm-1', timestamp ?? '', body) })),
    at('of another body', forged, () => ({}), statusText({ status: 'CANCELLED' })),
    at('of a body with a space more', forged, () => ({}), `${body} `),
    at('of no body', forged, () => ({}), ''),
    at('of another id', forged, () => ({ id: 'm-2' })),
    at('of another second', forged, ({ timestamp }) => ({ timestamp: String(Number(timestamp) - 1) })),
    at('with zeros before the seconds', forged, ({ timestamp }) => ({ timestamp: `0${timestamp}` })),
    at('where id and timestamp share a dot', forged, ({ timestamp }) => ({
      id: `m-1.${timestamp}`,
      timestamp: timestamp ?? '',
    })),
    at('without its version', forged, ({ signature }) => ({ signature: value(signature) })),
    ...['v0', 'v2', 'V1', 'v1a', 'v', '', ' v1', 'v1 ', 'v1:', 'v1,v1'].map((version) =>
      at(`of the version "${version}"`, version === ' v1' ? UNMATCHED : forged, ({ signature }) => ({
        signature: `${version},${value(signature)}`,
      })),
    ),
    at('in hex', forged, ({ signature }) => ({
      signature: `v1,${Buffer.from(value(signature), 'base64').toString('hex')}`,
    })),
    at('in base64url', forged, ({ signature }) => ({
      signature: `v1,_${Buffer.from(value(signature), 'base64').toString('base64url')}`,
    })),
    at('without its padding', forged, ({ signature }) => ({ signature: (signature ?? '').replace(/=+$/, '') })),
    at('with more padding', forged, ({ signature }) => ({ signature: `${signature}=` })),
    at('cut in half', forged, ({ signature }) => ({ signature: (signature ?? '').slice(0, 24) })),
    at('and more of it', forged, ({ signature }) => ({ signature: `${signature}A` })),
    at('split by commas', forged, ({ signature }) => ({ signature: `v1,AAAA,${signature}` })),
    at('a comma alone', forged, () => ({ signature: 'v1,' })),
    at('commas', forged, () => ({ signature: ',,,,' })),
    at('spaces between nothing', forged, () => ({ signature: 'v1, v1, v1,' })),
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
    at('two ids in two headers', forged, ({ id, timestamp, signature }) => [
      `webhook-id: ${id}`,
      `webhook-id: ${id}`,
      `webhook-timestamp: ${timestamp}`,
      `webhook-signature: ${signature}`,
    ]),
    at('two timestamps in two headers', uncounted, ({ id, timestamp, signature }) => [
      `webhook-id: ${id}`,
      `webhook-timestamp: ${timestamp}`,
      `webhook-timestamp: ${timestamp}`,
      `webhook-signature: ${signature}`,
    ]),
  ];
}
