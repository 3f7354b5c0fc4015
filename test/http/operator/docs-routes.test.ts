import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { OPERATOR_TOKEN, askOperator, type Operator } from '../../support/ask-operator.ts';
import { curlCommandsOf, readCurl } from '../../support/read-curl.ts';
import { statusWebhook } from '../../support/status-webhook.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';

/** Nobody signs with it. */
const WRONG = `whsec_${Buffer.alloc(24, 2).toString('base64')}`;
const EXAMPLE = '019c1f6e-5d2a-7c41-8f6b-2a9d4e7b1c33';
const EXAMPLE_TOKEN = '0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11';
const EXAMPLE_SESSION = '0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c14';
const EXAMPLE_NAMED = '0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c12';
const EXAMPLE_GRANT = '0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c13';
const page = await readFile(new URL('../../../docs/operator-api.md', import.meta.url), 'utf8');
/** Each command, and the answer that the page shows right behind it. */
const commands = curlCommandsOf(page).map((command) => {
  const end = page.replaceAll(/\\\n\s*/g, '').split(command)[1] ?? '';
  const shown = /^\n```\n\n```json\n(.*?)^```$/ms.exec(end);
  return { command, shown: shown?.index === 0 ? (JSON.parse(shown[1] ?? '') as unknown) : undefined };
});

let stage: Stage;
let operator: Operator;
let webhookId: string;
let tokenId: string;

beforeAll(async () => {
  stage = await startStage();
  operator = await askOperator(stage.app);
  await stage.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders', secret: WRONG });
  const webhook = statusWebhook({ serviceOrderId: 'order-4712', status: 'READY' });
  const dropped = await stage.post(await stage.webhookPath('club-1'), webhook);
  webhookId = String(dropped.body['webhookId']);
  const [token] = await stage.query('SELECT token_id FROM webhook_tokens');
  tokenId = String(token?.['token_id']);
  await stage.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  for (const nth of [1, 2, 3, 4, 5, 6]) {
    await stage.seedOrder({ serviceOrderId: `order-471${nth}`, locationId: 'club-1' });
  }
  await stage.query(
    `UPDATE orders SET rank = 0, sequence = 1, call_out_code = 'K472' WHERE service_order_id <> 'order-4712'`,
  );
  await stage.query(
    `UPDATE placements SET state = 'in_doubt', problem = 'the POS may have the order and cannot be asked', cause = '{"code":"pos_cannot_be_asked"}', finished_at = NULL, next_attempt_at = 'infinity', deadline_at = now() + interval '1 h'
     WHERE service_order_id IN ('order-4711', 'order-4714')`,
  );
  await stage.query(
    `UPDATE placements SET state = 'waiting', finished_at = NULL, next_attempt_at = now() + interval '1 h',
            deadline_at = now() + interval '1 h' WHERE service_order_id = 'order-4713'`,
  );
  await stage.query(`UPDATE orders SET ended_at = now() WHERE service_order_id = 'order-4712'`);
  await stage.query(
    `INSERT INTO operator_tokens (token_id, sha256, name, roles) VALUES ($1, '\\x00', 'laptop', '{viewer}')`,
    [EXAMPLE_NAMED],
  );
  await stage.query(`INSERT INTO operator_grants (grant_id, group_name, roles) VALUES ($1, 'kitchen', '{viewer}')`, [
    EXAMPLE_GRANT,
  ]);
  await stage.query(
    `INSERT INTO cancellations (service_order_id, location_id, asked_by, state, deadline_at, next_attempt_at)
     VALUES ('order-4716', 'club-1', 'platform', 'by_phone', now(), 'infinity')`,
  );
  await stage.query(
    `INSERT INTO operator_sessions (session_id, sha256, kind, actor_id, name, expires_at)
     VALUES ($1, '\\x01', 'person', 'issuer anna', 'Anna', now() + interval '1 h')`,
    [EXAMPLE_SESSION],
  );
});
afterAll(() => stage?.stop());

it.each(commands)('$command', async ({ command, shown }) => {
  const { url, method, headers, body } = readCurl(
    command.replaceAll(EXAMPLE, webhookId).replaceAll(EXAMPLE_TOKEN, tokenId),
    {
      EXPEDITER: '',
      OPERATOR_TOKEN,
    },
  );
  expect(headers['authorization']).toBe(`Bearer ${OPERATOR_TOKEN}`);
  if (body !== undefined) expect(headers['content-type']).toBe('application/json');
  const isLive = /\/live(\?|$)/.test(url);
  // Its stream is followed elsewhere; here of an order that has ended.
  const answer = isLive
    ? { status: (await fetch(`${await stage.listen()}${url}`, { headers })).status, body: {} }
    : method === 'POST'
      ? await operator.post(url, body)
      : await operator.get(url);
  expect([200, ...(isLive ? [204] : [])], JSON.stringify(answer.body)).toContain(answer.status);
  if (shown !== undefined) expect(answer.body).toEqual(alike(shown));
});

it('the page has a command for every route', () => {
  const called = new Set(
    commands.map(({ command }) => {
      const { url, method } = readCurl(command, { EXPEDITER: '', OPERATOR_TOKEN });
      return `${method} ${url
        .replace(/\?.*/, '')
        .replace(EXAMPLE, '*')
        .replace(EXAMPLE_TOKEN, '*')
        .replace(EXAMPLE_SESSION, '*')
        .replace(EXAMPLE_NAMED, '*')
        .replace(EXAMPLE_GRANT, '*')
        .replace(/(order-\d+|club-1)/, '*')}`;
    }),
  );
  for (const [path, methods] of Object.entries(operator.document.paths)) {
    if (path === '/openapi.json') continue;
    for (const method of Object.keys(methods)) {
      expect(called).toContain(`${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, '*')}`);
    }
  }
});

/** The very same, but for times, ids of ours and tokens. */
function alike(shown: unknown): unknown {
  if (Array.isArray(shown)) return shown.length === 0 ? [] : expect.arrayContaining(shown.map(alike));
  if (typeof shown === 'object' && shown !== null) {
    return Object.fromEntries(Object.entries(shown).map(([name, value]) => [name, alike(value)]));
  }
  if (typeof shown !== 'string') return shown;
  const kind = [/^\d{4}-\d\d-\d\dT/, /^[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f-]{21}$/, /^exo_/].find((each) =>
    each.test(shown),
  );
  return kind === undefined ? shown : expect.stringMatching(kind);
}
