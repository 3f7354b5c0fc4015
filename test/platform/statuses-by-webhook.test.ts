/** docs/connect-your-platform.md, "Statuses by webhook": its receiver runs, and its message is a real one. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { LiveMessage } from '../../src/core/domain/live-message.ts';
import { freePort } from '../../world/network/free-port.ts';
import { serveHttp } from '../../world/network/serve-http.ts';
import { endWithUs } from '../../world/processes/end-with-us.ts';
import { until } from '../../world/processes/until.ts';
import { startPos } from '../../world/pos/start-pos.ts';
import { startSystem } from '../../world/system/start-system.ts';
import { read } from '../support/read-project.ts';

const [, section = ''] = /^### Statuses by webhook\n(.*?)^### /ms.exec(read('docs/connect-your-platform.md')) ?? [];
const [, sample = ''] = /```text\n(.*?)```/s.exec(section) ?? [];
const STATUS_WEBHOOK_SECRET = `whsec_${randomBytes(32).toString('base64')}`;

it('the receiver on the page is the example, in at most 20 lines', () => {
  const [, code = ''] = /```js\n(.*?)```/s.exec(section) ?? [];
  expect(code).toBe(read('examples/receive-statuses.mjs'));
  expect(code.trimEnd().split('\n').length).toBeLessThanOrEqual(20);
});

it('the receiver takes each status once, in order, and refuses a wrong signature; the message on the page is like theirs', async () => {
  const port = await freePort();
  const env = { PATH: process.env['PATH'], STATUS_WEBHOOK_SECRET, PORT: String(port) };
  const receiver = spawn(process.execPath, ['examples/receive-statuses.mjs'], { env });
  endWithUs(receiver);
  onTestFinished(() => void receiver.kill());
  let printed = '';
  receiver.stdout.setEncoding('utf8').on('data', (words: string) => (printed += words));
  const send = (body: string, headers: Record<string, string>): Promise<number> =>
    fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body, headers }).then(({ status }) => status);
  await until(() => send('{}', {}).catch(() => undefined));

  const messages: { headers: Record<string, string>; body: string }[] = [];
  const between = await serveHttp(async (request, response) => {
    const [body, headers] = [await text(request), request.headers as Record<string, string>];
    const own = ['content-type', 'webhook-id', 'webhook-timestamp', 'webhook-signature'];
    const message = { body, headers: Object.fromEntries(own.map((name) => [name, headers[name] ?? ''])) };
    messages.push(message);
    await send(body, message.headers);
    // A repeat.
    response.writeHead(await send(body, message.headers)).end();
  });
  onTestFinished(() => between.stop());
  const system = await startSystem({
    stepped: ['placements', 'relay', 'kitchens'],
    env: {
      GOOGLE_CLOUD_PROJECT: '',
      PUBLIC_URL: 'https://expediter.example.com',
      STATUS_WEBHOOK_URL: `${between.url}/statuses`,
      STATUS_WEBHOOK_SECRET,
    },
  });
  onTestFinished(() => system.stop());
  const pos = await startPos();
  onTestFinished(() => pos.stop());
  await system.addLocation('club-1', { ordersUrl: pos.ordersUrl });
  const { serviceOrderId } = await system.placeOrder({ locationId: 'club-1' });
  await system.finish('placements');
  await system.finish('relay');
  await until(() => printed.includes(' sent'));
  expect(printed.trim().split(/\s*\n/)).toEqual([`${serviceOrderId} placed`, `${serviceOrderId} sent`]);

  const [, sent] = messages;
  const body = sent?.body ?? '';
  expect(await send(body.replace('"sent"', '"failed"'), sent?.headers ?? {})).toBe(401);
  const [first = '', ...lines] = sample.trimEnd().split('\n');
  expect(first).toBe('POST /statuses');
  const names = lines.slice(0, lines.indexOf('')).map((line) => line.split(':')[0]);
  expect(names).toEqual(Object.keys(sent?.headers ?? {}));
  expect(sample).toContain(`\ncontent-type: ${sent?.headers['content-type']}\n`);
  const [shown, real] = [lines.at(-1) ?? '', body].map((json) => JSON.parse(json) as Record<string, unknown>);
  expect(Object.keys(shown ?? {})).toEqual(Object.keys(real ?? {}));
  for (const name of ['source', 'type', 'dataschema', 'datacontenttype', 'sequence', 'specversion']) {
    expect(shown?.[name], name).toEqual(real?.[name]);
  }
  expect(LiveMessage.parse(shown?.['data'])).toMatchObject({ status: 'received', memberState: 'sent' });
  expect(Object.keys(real?.['data'] ?? {})).toEqual(expect.arrayContaining(Object.keys(shown?.['data'] ?? {})));
});
