import { doorInputs } from './door-inputs.ts';
import { followInputs } from './follow-inputs.ts';
import {
  MARKER,
  NOT_JSON,
  NOT_UTF8,
  NO_ORDER,
  POISON,
  UNMATCHED,
  UNREADABLE,
  dropped,
  isUtf8,
  recorded,
  statusText,
  toPush,
  toSignal,
  toWebhook,
  type Door,
  type HostileInput,
} from './hostile-input.ts';
import { jsonTexts, pushInputs } from './push-inputs.ts';
import { returnInputs } from './webhook-inputs.ts';

const MIB = 2 ** 20;

const RETURN_ENDPOINT: Door = {
  to: toWebhook,
  path: '/webhook/standard/club',
  usual: ['Host: x'],
  good: (name) => ({ body: statusText({ id: `${MARKER}-${name}`.slice(0, 255) }), expected: UNMATCHED }),
  junk: (body) => dropped(isUtf8(Buffer.from(body)) ? NOT_JSON : NOT_UTF8),
  interrupted: UNREADABLE,
  limit: MIB,
  oversized: { status: 200, outcome: 'dropped', reason: `over ${MIB} bytes`, beginning: true },
  // As long as a token from before there were checksums, so that Postgres is asked.
  uninvited: { path: `/webhook/standard/club?token=${MARKER.padEnd(43, 'x')}` },
};

const FORWARD_ENDPOINT: Door = {
  to: toPush,
  path: '/pubsub/push',
  usual: ['Authorization: Bearer <pushToken>'],
  good: (name) => ({ body: JSON.stringify({ orderId: `h-${name}` }), expected: recorded(`h-${name}`) }),
  junk: () => POISON,
  interrupted: { status: 503 },
  limit: 16 * MIB,
  oversized: { status: 204, order: undefined },
  uninvited: { lines: [`Authorization: Bearer ${MARKER}.${MARKER}.${MARKER}`] },
};

const SIGNAL_ENDPOINT: Door = {
  to: toSignal,
  path: '/signal',
  usual: ['Host: x'],
  good: (name) => ({ body: JSON.stringify({ orderId: `s-${name}` }), expected: recorded(`s-${name}`) }),
  junk: () => NO_ORDER,
  interrupted: UNREADABLE,
  limit: MIB,
  oversized: { status: 400 },
  uninvited: { path: `/signal?token=exg_${MARKER.padEnd(49, 'x')}` },
};

export function signalInputs(): HostileInput[] {
  return [...doorInputs(SIGNAL_ENDPOINT), ...jsonTexts(toSignal, { door: 's', junk: NO_ORDER })];
}

export function webhookInputs(): HostileInput[] {
  return [...doorInputs(RETURN_ENDPOINT), ...returnInputs()];
}

export function forwardInputs(): HostileInput[] {
  return [...doorInputs(FORWARD_ENDPOINT), ...pushInputs(), ...followInputs()];
}
