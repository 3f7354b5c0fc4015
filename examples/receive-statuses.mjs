// npm install standardwebhooks@1.1.1
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';

const webhook = new Webhook(process.env.STATUS_WEBHOOK_SECRET);
const sequences = new Map();
const server = createServer(async (request, response) => {
  try {
    const { type, data } = webhook.verify(await text(request), request.headers);
    if (type === 'expediter.order.status-changed.v1' && data.sequence > (sequences.get(data.serviceOrderId) ?? 0)) {
      console.log(data.serviceOrderId, data.memberState, data.cancellation ?? data.change ?? '');
      sequences.set(data.serviceOrderId, data.sequence);
    }
    response.writeHead(204).end();
  } catch {
    response.writeHead(401).end();
  }
});
server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1');
