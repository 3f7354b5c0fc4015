import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { sendJson } from '../../../world/network/serve-http.ts';
import { hmac, signStandard, type Habits } from './start-bridge.ts';

/** A bridge with one fault, and what `expediter certify` says of it. */
type Broken = Habits & {
  /** The check that fails, of which all below is said; by default `received`. */
  check?: string;
  /** By default that its signature is wrong. */
  found?: RegExp;
  toDo: RegExp;
  request?: RegExp;
  /** Checks that fail besides. */
  also?: readonly string[];
};

/** In milliseconds; that of the tests. A bridge on a busy machine answers within it. */
export const ANSWER_MS = 5_000;

const keyOf = (secret: string): Buffer => Buffer.from(secret.slice('whsec_'.length), 'base64');

/** Signed as it is sent. */
function flat(event: object): { signed: string; sent: string } {
  const text = JSON.stringify(event);
  return { signed: text, sent: text };
}

/** Two that look at the same moment both find nothing. */
function looksFirst(): (nth: number) => Promise<string> {
  let stored: string | undefined;
  return async (nth) => {
    const found = stored;
    await sleep(100);
    return (stored = found ?? `ticket-${nth}`);
  };
}

export const BROKEN: Record<string, Broken> = {
  'makes a ticket for each request': {
    ticketOf: (nth) => `ticket-${nth}`,
    check: 'takes it once',
    found: /made another ticket: "ticket-1", then "ticket-3"/,
    toDo: /store the id of each order with its ticket/,
    also: ['at once'],
  },
  'makes two tickets for two simultaneous requests': {
    ticketOf: looksFirst(),
    check: 'at once',
    found: /two requests at the same time made two tickets: "ticket-1" and "ticket-2"/,
    toDo: /a column with a unique index/,
  },
  'answers with a number as the ticket id': {
    ticketOf: (nth) => `${46 + nth}`,
    answer: (response, { ticket }) => sendJson(response, 200, { providerOrderId: Number(ticket) }),
    check: 'takes the order',
    found: /providerOrderId, which is a number, not an id/,
    toDo: /write the id as a string/,
  },
  'answers with null as the ticket id': {
    answer: (response) => sendJson(response, 200, { providerOrderId: null }),
    check: 'takes the order',
    found: /providerOrderId, which is null, not an id/,
    toDo: /write the id as a string/,
  },
  'sends webhooks with two ticket ids, and answers with no id': {
    answer: (response, { ticket }) => sendJson(response, 200, { providerOrderID: ticket }),
    names: ({ serviceOrderId }) => ({ thirdPartyReference: serviceOrderId, id: randomUUID() }),
    check: 'ticket id',
    found: /webhooks named the order by \d ids: "/,
    toDo: /whether the kitchen has two tickets for it/,
  },
  'accepts an order with a wrong signature': {
    trusts: true,
    check: 'forged order',
    found: /anyone who knows the URL can order: .* was accepted, certify-[0-9a-f]{16}$/,
    toDo: /discard the ticket of certify-[0-9a-f]{16}/,
  },
  'refuses an order that it has already': {
    answer: (response, { nth, ticket }) =>
      nth === 1
        ? sendJson(response, 200, { providerOrderId: ticket })
        : sendJson(response, 422, { reason: 'already there' }),
    check: 'takes it once',
    found: /the same order, sent again, was refused: the POS refused the order with 422/,
    toDo: /answer a repeat like the first/,
    also: ['at once'],
  },
  'answers an order too late': {
    async answer(response, { ticket }) {
      await sleep(2 * ANSWER_MS);
      sendJson(response, 200, { providerOrderId: ticket });
    },
    check: 'takes the order',
    found: /no answer in 5 s/,
    toDo: /answer first, then print: docs\/connect-your-pos.md#orders/,
  },
  'never sends a ticket id': {
    answer: (response) => void response.end('OK'),
    names: ({ serviceOrderId }) => ({ thirdPartyReference: serviceOrderId }),
    check: 'ticket id',
    found: /neither the answer to the order nor a webhook named the id/,
    toDo: /return the ticket's id in the answer/,
    request: /answered 200 in \d+ ms: no JSON$/,
  },
  'sends a ticket id that was in no answer': {
    answer: (response, { ticket }) => sendJson(response, 200, { id: ticket }),
    names: (_order, ticket) => ({ id: ticket }),
    found: /named a ticket only by an id that no answer to an order contained/,
    toDo: /answer an order with the ticket's id/,
    also: ['ticket id'],
  },
  'shortens the id of the order': {
    names: ({ serviceOrderId }, ticket) => ({ thirdPartyReference: serviceOrderId.slice(0, 12), id: ticket }),
    found: /named the order by an id that is not the order's id/,
    toDo: /name our id exactly as it came/,
  },
  'leaves a status out': {
    does: (status) => (status === 'RECEIVED' ? ['IN_PROGRESS'] : [status]),
    found: /never came, but IN_PROGRESS did: the member was never notified/,
    toDo: /--without received/,
  },
  'sends statuses in the wrong order': {
    does: (status) => (status === 'RECEIVED' ? ['READY', 'IN_PROGRESS', 'RECEIVED'] : [status]),
    found: /RECEIVED came after READY: the member was never notified/,
    toDo: /send statuses in order/,
    also: ['in_progress'],
  },
  'sends an unknown status': {
    does: (status) => [status === 'IN_PROGRESS' ? 'COOKING' : status],
    check: 'in_progress',
    found: /was ignored, because its status or kind of event is unknown/,
    toDo: /one of these as "status": RECEIVED, IN_PROGRESS, READY, EN_ROUTE, COMPLETED, FAILED, CANCELLED$/,
    request: /with \{"eventType":"order.status".*"status":"COOKING"/,
  },
  'signs by a method of its own': {
    sign: (secret, _id, _seconds, signed) => hmac(secret, signed, 'hex'),
    toDo: /sign id, time and body in this order, joined by dots/,
  },
  'signs other bytes than it sends': {
    write: (event) => ({ signed: JSON.stringify(event), sent: JSON.stringify(event, undefined, 4) }),
    toDo: /sign exactly the bytes that you send/,
  },
  'signs with the encoded secret': {
    sign: (secret, id, seconds, signed) => `v1,${hmac(secret, `${id}.${seconds}.${signed}`)}`,
    toDo: /decode the secret before you sign/,
  },
  'signs in hex': {
    sign: (secret, id, seconds, signed) => hmac(keyOf(secret), `${id}.${seconds}.${signed}`, 'hex'),
    toDo: /the signature is right, but in hex: write its 32 bytes as base64/,
  },
  'signs without the prefix v1': {
    sign: (...about) => signStandard(...about).slice('v1,'.length),
    toDo: /write "v1," before the base64/,
  },
  'signs in base64url': {
    sign: (...about) =>
      signStandard(...about)
        .replaceAll('+', '-')
        .replaceAll('/', '_')
        .replaceAll('=', ''),
    toDo: /use standard base64, with \+ \/ and =/,
  },
  'signs the body alone': {
    sign: (secret, _id, _seconds, signed) => `v1,${hmac(keyOf(secret), signed)}`,
    toDo: /you signed only the body: sign "\{webhook-id\}\.\{webhook-timestamp\}\." and the body/,
  },
  'sends a timestamp in milliseconds': {
    clock: () => Date.now() * 1_000,
    found: /webhook-timestamp is not a number of seconds/,
    toDo: /send seconds, not milliseconds/,
  },
  'sends webhooks without the object order': {
    write: (event) => flat({ eventType: 'order.status', ...(event as { order: object }).order }),
    found: /a webhook about the order was dropped/,
    toDo: /put thirdPartyReference, id and status inside "order"/,
  },
  'sends an unknown event type': {
    write: (event) => flat({ ...event, eventType: 'order.updated' }),
    does: (status) => (status === 'RECEIVED' ? [status] : []),
    found: /was ignored, because its status or kind of event/,
    toDo: /write "eventType": "order.status"/,
    request: /^the last webhook: POST /,
    also: ['in_progress'],
  },
  'refuses a valid signature of the service': {
    answer: (response) => sendJson(response, 401, {}),
    check: 'takes the order',
    found: /answered 401/,
    toDo: /your check of our signature refused it: the key is the base64 behind whsec_, decoded/,
  },
  'answers an order with 500': {
    answer: (response) => sendJson(response, 500, {}),
    check: 'takes the order',
    found: /answered 500/,
    toDo: /your bridge failed on this order: check its log/,
  },
  'does not sign its webhooks': {
    sign: () => '',
    found: /dropped: not authentic: the header webhook-signature is missing/,
    toDo: /Enable signing at the POS, with the same secret/,
  },
  'has a clock that is ten minutes slow': {
    clock: () => Date.now() - 600_000,
    found: /dropped: not authentic: the signature is right, but webhook-timestamp is over 300 s old/,
    toDo: /Correct the clock .* it must sign each try again/,
  },
  'sends webhooks with an incomplete token': {
    url: (webhookUrl) => webhookUrl.slice(0, -1),
    found: /no webhook about the order came to http:.*\/webhook\/standard\/.* with a valid token/,
    toDo: /401 means a wrong or incomplete token in the URL/,
  },
  'sends to the URL of another restaurant': {
    url: () => SECOND_URL.url,
    found: /came to the location "another-club", with its URL and token/,
    toDo: /expediter token issue --location/,
  },
  'does not repeat a webhook that was answered 500': {
    attempts: 1,
    check: 'after a 500',
    found: /a webhook was answered 500, and did not come again within 10 s/,
    toDo: /send it again after 5 s, 30 s, 5 min/,
  },
  'never repeats a webhook, and sends each status for two tickets': {
    tickets: 2,
    attempts: 1,
    check: 'after a 500',
    found: /each status came as two webhooks with different ids/,
    toDo: /check whether there are two tickets/,
  },
};

/** The webhook URL of a restaurant that is not the one of the test; known once that is there. */
export const SECOND_URL = { locationId: 'another-club', url: '' };
