import { expect, it } from 'vitest';
import { orderFetcher } from '../../src/core/placements/fetch-order.ts';
import { examinePlatform, queryPlatform } from '../../src/diagnostics/examine-platform.ts';
import { loadOrderModule } from '../../src/platform/load-order-module.ts';
import { serveHttp } from '../../world/network/serve-http.ts';

const order = { id: 'order-1' };
const READ = ['order', 'has an order for a made-up id'] as const;
const MISSING = ['missing', 'no such order'] as const;
const OTHER = ['platform_failing', 'not GraphQL'] as const;
const json = 'application/json';

/** What the service makes of an answer of 200, and what the doctor says about it. */
it.each<[string, type: string | undefined, body: unknown, readonly [service: string, doctor: string]]>([
  ['without errors', json, { data: { order } }, READ],
  ['with errors: null', json, { data: { order }, errors: null }, READ],
  ['with errors: []', json, { data: { order }, errors: [] }, READ],
  ['with extensions: null', json, { data: { order }, extensions: null }, READ],
  ['with extensions that are no object', json, { data: { order }, extensions: 'none' }, READ],
  ['of text/plain', 'text/plain', { data: { order } }, READ],
  ['of text/html', 'text/html; charset=utf-8', { data: { order } }, READ],
  ['of no type', undefined, { data: { order } }, READ],
  ['after a byte order mark', json, `\uFEFF${JSON.stringify({ data: { order } })}`, READ],
  ['that has no order, with errors: null', json, { data: { order: null }, errors: null }, MISSING],
  ['of text/plain that has no order', 'text/plain', { data: { order: null } }, MISSING],
  ['that is an HTML page', 'text/html', '<h1>Parked</h1>', OTHER],
  ['that is an HTML page of type JSON', json, '<h1>Parked</h1>', OTHER],
  ['that is empty', json, '', OTHER],
  ['that is null', json, 'null', OTHER],
  ['of another kind', json, { status: 'ok' }, OTHER],
  ['that has errors: [] and nothing else', json, { errors: [] }, OTHER],
  ['whose data is a list', json, { data: [] }, OTHER],
  ['whose data is a text', json, { data: 'none' }, OTHER],
  ['whose errors are texts', json, { data: { order: null }, errors: ['no'] }, ['platform_failing', 'with an error']],
  [
    'that refuses a field of the order',
    json,
    { data: { order: null }, errors: [{ path: ['order', 'items', 0, 'notes'], extensions: { code: 'FORBIDDEN' } }] },
    ['platform_refuses_field', 'refuses us order.items.*.notes'],
  ],
  [
    'that refuses the query',
    json,
    { errors: [{ message: 'Cannot query field "notes" on type "Item".' }] },
    ['platform_refuses_query', 'refuses the query: Cannot query field "notes" on type "Item"'],
  ],
  [
    'whose errors are one',
    json,
    { data: null, errors: { message: 'no' } },
    ['platform_failing', 'with an error for a made-up order id: no'],
  ],
])(
  'the service and `expediter doctor` read an answer of the platform alike: %s',
  async (_what, type, body, [service, doctor]) => {
    const headers = type === undefined ? {} : { 'content-type': type };
    const server = await serveHttp((_request, response) => {
      response.writeHead(200, headers).end(typeof body === 'string' ? body : JSON.stringify(body));
    });
    const module = await loadOrderModule({});
    const fetchOrder = orderFetcher({ url: server.url, token: undefined, module, warn: () => {} });
    const order = await fetchOrder('order-1').catch((error: Error) => error);
    const checks = examinePlatform(await queryPlatform({ ORDER_API_URL: server.url, ORDER_API_TOKEN: 'x' }));
    await server.stop();
    const found =
      order instanceof Error ? (order.cause as { code: string }).code : order === null ? 'missing' : 'order';
    expect(found).toBe(service);
    expect(checks[0]?.found).toContain(doctor);
  },
);
