// A bridge between Expediter and a POS: WEBHOOK_URL='http://…' SECRET='whsec_…' node examples/bridge.mjs
// docs/connect-your-pos.md says what it must do.
import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const { WEBHOOK_URL, SECRET, PORT = '3000' } = process.env;
const key = Buffer.from(SECRET.replace('whsec_', ''), 'base64');
/** Tickets by our order id. In your bridge, use a table with a unique index on that id. */
const tickets = new Map();

function sign(id, seconds, body) {
  return `v1,${createHmac('sha256', key).update(`${id}.${seconds}.`).update(body).digest('base64')}`;
}

/** Whether the order is from Expediter. Of several signatures in the header, one right one is enough. */
function isAuthentic(headers, body) {
  const seconds = headers['webhook-timestamp'];
  const expected = Buffer.from(sign(headers['webhook-id'], seconds, body));
  const isRight = (given) => given.length === expected.length && timingSafeEqual(given, expected);
  const isFresh = Math.abs(Date.now() / 1000 - seconds) < 300;
  return isFresh && (headers['webhook-signature'] ?? '').split(' ').some((each) => isRight(Buffer.from(each)));
}

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const answer = (status, json) =>
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json));
  if (!isAuthentic(request.headers, body)) return answer(401, { reason: 'wrong signature' });
  const order = JSON.parse(body);
  let ticket = tickets.get(order.serviceOrderId);
  if (ticket === undefined) {
    ticket = randomUUID(); // in your bridge, the till's id
    tickets.set(order.serviceOrderId, ticket);
    void cook(order, ticket);
  }
  return answer(200, { providerOrderId: ticket });
});
server.listen(Number(PORT));

/** A kitchen that takes two seconds a step. In your bridge, the till causes the statuses. */
async function cook({ serviceOrderId, fulfillment }, ticket) {
  const onItsWay = fulfillment.type === 'delivery' ? ['EN_ROUTE'] : [];
  for (const status of ['RECEIVED', 'IN_PROGRESS', 'READY', ...onItsWay, 'COMPLETED']) {
    await sleep(2000);
    await sendStatus(serviceOrderId, ticket, status);
  }
}

/** Sends a status until it is answered 200. Your bridge must store it on disk until then. */
async function sendStatus(orderId, ticket, status) {
  const event = { eventType: 'order.status', order: { thirdPartyReference: orderId, id: ticket, status } };
  const body = JSON.stringify(event);
  const id = randomUUID(); // the same in each attempt
  for (const wait of [0, 5, 30, 300, 1800, 7200, 18000, 36000]) {
    await sleep(wait * 1000);
    const seconds = Math.floor(Date.now() / 1000);
    const headers = {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(seconds),
      'webhook-signature': sign(id, seconds, body),
    };
    const answered = await fetch(WEBHOOK_URL, { method: 'POST', headers, body }).catch(() => undefined);
    console.log(orderId, status, answered?.status ?? 'no answer', (await answered?.text().catch(() => '')) ?? '');
    if (answered?.ok) return;
    // Your bridge must store the status, and send nothing here until a person has corrected the URL.
    if (answered?.status === 401) return console.error('the webhook URL is wrong');
  }
  console.error(orderId, status, 'was never accepted: call the operator of Expediter');
}
