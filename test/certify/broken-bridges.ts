import { setTimeout as sleep } from 'node:timers/promises';
import { sendJson } from '../support/serve-http.ts';
import { hmac, type Habits } from './start-bridge.ts';

/** A bridge with one fault, and what `expediter certify` says of it. */
type Broken = Habits & {
  /** The first check that fails. */
  check: string;
  found: RegExp;
  toDo: RegExp;
  request?: RegExp;
  /** Checks that fail besides. */
  also?: readonly string[];
};

/** In milliseconds; that of the tests. */
export const ANSWER_MS = 1_000;

const SECOND_LOCATION = 'another-club';

export const BROKEN: Record<string, Broken> = {
  'makes a ticket for each request': {
    ticketOf: (nth) => `ticket-${nth}`,
    check: 'takes it once',
    found: /made another ticket: "ticket-1", then "ticket-2"/,
    toDo: /store the id of each order with its ticket/,
  },
  'refuses an order that it has already': {
    answer: (response, { nth, ticket }) =>
      nth === 1
        ? sendJson(response, 200, { providerOrderId: ticket })
        : sendJson(response, 422, { reason: 'already there' }),
    check: 'takes it once',
    found: /the same order again was not taken: the POS refused the order with 422/,
    toDo: /answer a repeat as you answered the first/,
  },
  'answers late': {
    async answer(response, { ticket }) {
      await sleep(2 * ANSWER_MS);
      sendJson(response, 200, { providerOrderId: ticket });
    },
    check: 'takes the order',
    found: /no answer in 1 s/,
    toDo: /docs\/providers\/standard.md/,
  },
  'answers in words, and never says its own id': {
    answer: (response) => void response.end('OK'),
    names: ({ serviceOrderId }) => ({ thirdPartyReference: serviceOrderId }),
    check: 'ticket id',
    found: /neither the answer to the order nor a webhook named the id/,
    toDo: /answer the order with it/,
    request: /answered 200 in \d+ ms: no JSON$/,
  },
  'names a ticket by an id that it never told': {
    answer: (response, { ticket }) => sendJson(response, 200, { id: ticket }),
    names: (_order, ticket) => ({ id: ticket }),
    check: 'received',
    found: /named a ticket only by an id that no answer to an order has told us/,
    toDo: /answer an order with the ticket's id/,
    also: ['ticket id'],
  },
  'changes our id': {
    names: ({ serviceOrderId }, ticket) => ({ thirdPartyReference: serviceOrderId.slice(0, 12), id: ticket }),
    check: 'received',
    found: /named the order by an id that is not its own/,
    toDo: /name our id exactly as it came/,
  },
  'leaves a status out': {
    does: (status) => (status === 'RECEIVED' ? ['IN_PROGRESS'] : [status]),
    check: 'received',
    found: /never came, and IN_PROGRESS did: the member was never told/,
    toDo: /--without received/,
  },
  'sends statuses in the wrong order': {
    does: (status) => (status === 'RECEIVED' ? ['READY', 'IN_PROGRESS', 'RECEIVED'] : [status]),
    check: 'received',
    found: /RECEIVED came behind READY: the member was never told/,
    toDo: /send statuses in their order/,
    also: ['in_progress'],
  },
  'has words of its own': {
    does: (status) => [status === 'IN_PROGRESS' ? 'COOKING' : status],
    check: 'in_progress',
    found: /was ignored: its status, or its kind of event, is none that we know/,
    toDo: /send the words of docs\/providers\/standard.md/,
    request: /with \{"eventType":"order.status".*"status":"COOKING"/,
  },
  'signs in another way': {
    sign: (secret, _id, _seconds, signed) => hmac(secret, signed, 'hex'),
    check: 'received',
    found: /dropped: not authentic: no signature in webhook-signature is ours/,
    toDo: /sign id, time and body in this order with dots between/,
  },
  'signs the object and not the bytes': {
    write: (event) => ({ signed: JSON.stringify(event), sent: JSON.stringify(event, undefined, 4) }),
    check: 'received',
    found: /dropped: not authentic: no signature in webhook-signature is ours/,
    toDo: /sign the very bytes that you send/,
  },
  "takes the secret's letters for the key": {
    sign: (secret, id, seconds, signed) => `v1,${hmac(secret, `${id}.${seconds}.${signed}`)}`,
    check: 'received',
    found: /dropped: not authentic: no signature in webhook-signature is ours/,
    toDo: /decode the secret before you sign/,
  },
  'does not sign': {
    sign: () => '',
    check: 'received',
    found: /dropped: not authentic: the header webhook-signature is missing/,
    toDo: /sign it with the secret of the settings/,
  },
  'has a clock that is behind': {
    clock: () => Date.now() - 600_000,
    check: 'received',
    found: /dropped: not authentic: webhook-timestamp is over 300 s old/,
    toDo: /set the clock, and sign each attempt anew/,
  },
  'cuts the token': {
    url: (webhookUrl) => webhookUrl.slice(0, -1),
    check: 'received',
    found: /no webhook about the order came to http:.*\/webhook\/standard\/.* with a token that is valid/,
    toDo: /401 is a wrong or cut token in the URL/,
  },
  'sends to the URL of another restaurant': {
    url: () => SECOND_URL.url,
    check: 'received',
    found: /came to the location "another-club", by its URL and its token/,
    toDo: /expediter token issue --location/,
  },
  'does not send again what was answered 500': {
    attempts: 1,
    check: 'after a 500',
    found: /a webhook was answered 500, and did not come again within 3 s/,
    toDo: /send it again after 5 s, 5 min/,
  },
};

/** The webhook URL of a restaurant that is not the one of the test; known once that is there. */
export const SECOND_URL = { locationId: SECOND_LOCATION, url: '' };
