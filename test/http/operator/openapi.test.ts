import type { RouteOptions } from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pino } from 'pino';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { buildListener } from '../../../src/server/listener.ts';
import { ACCESS } from '../../../src/operators/registry.ts';
import { boundConnections } from '../../../src/http/bound-connections.ts';
import { PROBLEMS, type ProblemStatus } from '../../../src/http/problem.ts';
import { OPERATOR_TOKEN, askOperator, type ApiDocument, type Operator } from '../../../world/system/ask-operator.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { read } from '../../support/read-project.ts';

/** Which do not belong to operators. */
const PUBLIC = [
  '/healthz',
  '/readyz',
  '/pubsub/push',
  '/signal',
  '/webhook',
  '/webhook/*',
  '/webhook/:integration/:locationId',
];
const OUTSIDE = { webhook: { bodyBudget: 1, limits: { answerMs: 1, commitMs: 1, perSecond: 1 } } };
const OPERATOR = { token: OPERATOR_TOKEN, translating: { publicUrl: '' } };

let stage: Stage;
let operator: Operator;

beforeAll(async () => {
  stage = await startStage();
  operator = await askOperator(stage.app);
});
afterAll(() => stage?.stop());

/** Every route there is, as it was added: those of the API, and those of the console. */
async function routes(): Promise<{ api: string[]; console: string[] }> {
  const all = (await routesOf({ outside: OUTSIDE, operator: OPERATOR }))
    // The pages of restaurants' owners, and the sign-in of commands, are not of the API.
    .filter(({ method, url }) => method !== 'HEAD' && !PUBLIC.includes(url) && !/^\/(connect|login)(\/|$)/.test(url))
    .map(({ method, url }) => `${method.toUpperCase()} ${url.replaceAll(/:(\w+)/g, '{$1}')}`)
    .toSorted();
  const isConsole = (route: string): boolean => / \/console(\/|$)/.test(route);
  return { api: all.filter((route) => !isConsole(route)), console: all.filter(isConsole) };
}

async function routesOf(endpoints: object): Promise<{ method: string; url: string }[]> {
  const found: RouteOptions[] = [];
  const app = buildListener({
    log: pino({ level: 'silent' }),
    connections: boundConnections(1, console),
    ...endpoints,
  } as unknown as Parameters<typeof buildListener>[0]);
  app.addHook('onRoute', (route) => void found.push(route));
  await app.ready();
  await app.close();
  return found.flatMap(({ method, url }) => [method].flat().map((each) => ({ method: each, url })));
}

const operationsOf = ({ paths }: ApiDocument): string[] =>
  Object.entries(paths)
    .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`))
    .toSorted();

describe("the public listener and the operators' listener", () => {
  it('share only the routes /healthz and /readyz', async () => {
    const urlsOf = async (endpoints: object): Promise<string[]> => (await routesOf(endpoints)).map(({ url }) => url);
    const [outside, operator] = [await urlsOf({ outside: OUTSIDE }), await urlsOf({ operator: OPERATOR })];
    expect(outside.length).toBeGreaterThan(2);
    expect(outside.filter((url) => !PUBLIC.includes(url))).toEqual([]);
    expect(new Set(operator.filter((url) => outside.includes(url)))).toEqual(new Set(['/healthz', '/readyz']));
    const both = await urlsOf({ outside: OUTSIDE, operator: OPERATOR });
    expect(new Set([...outside, ...operator])).toEqual(new Set(both));
  });
});

describe('the OpenAPI document', () => {
  // Where it is not: npm run docs
  it('equals docs/openapi.json', () => {
    expect(operator.document).toEqual(JSON.parse(read('docs/openapi.json')));
  });

  it('describes exactly the routes of operators', async () => {
    const { api } = await routes();
    expect(api.length).toBeGreaterThan(12);
    expect(operationsOf(operator.document)).toEqual(api);
  });

  it('describes the same routes that the console calls under /console/api', async () => {
    const { api, console } = await routes();
    const own = ['GET /console', 'GET /console/*', 'GET /console/assets/*'];
    const session = [
      ...['DELETE', 'GET', 'POST'].map((method) => `${method} /console/session`),
      'GET /console/session/ways',
      ...['DELETE', 'GET'].map((method) => `${method} /console/sessions`),
      'DELETE /console/sessions/{sessionId}',
    ];
    const again = api
      .filter((route) => !/ \/(metrics|openapi\.json)$/.test(route))
      .map((route) => route.replace(' /v1/', ' /console/api/'));
    expect(console).toEqual([...own, ...session, ...again, 'GET /console/api/*'].toSorted());
  });

  it('is OpenAPI 3.1 without external references', () => {
    const document = operator.document as unknown as Record<string, Record<string, unknown>>;
    expect(document).toMatchObject({
      openapi: '3.1.0',
      info: { title: expect.any(String), version: expect.stringMatching(/^\d+\.\d+\.\d+/) },
      security: [{ operatorToken: [] }],
      components: { securitySchemes: { operatorToken: { type: 'http', scheme: 'bearer' } } },
    });
    const text = JSON.stringify(document);
    for (const [, path = ''] of text.matchAll(/"\$ref":"#\/([^"]+)"/g)) {
      expect(operator.document, path).toHaveProperty(path.split('/'));
    }
    expect(text).not.toMatch(/"\$ref":"(?!#\/components\/(?:schemas|responses)\/)/);
    const tags = (document['tags'] as unknown as { name: string }[]).map(({ name }) => name);
    const ids = new Set<string>();
    for (const [path, methods] of Object.entries(operator.document.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        const at = `${method} ${path}`;
        const {
          operationId,
          parameters = [],
          responses,
          ...about
        } = operation as typeof operation & {
          tags: string[];
          summary: string;
          parameters?: { name: string; in: string; required: boolean; schema: object }[];
        };
        expect(ids.has(operationId), at).toBe(false);
        ids.add(operationId);
        expect(about.summary, at).toBeTruthy();
        expect(about.tags, at).toHaveLength(1);
        expect(tags, at).toEqual(expect.arrayContaining(about.tags));
        const inPath = parameters.filter((each) => each.in === 'path').map((each) => `{${each.name}}`);
        expect(inPath, at).toEqual(path.match(/\{\w+\}/g) ?? []);
        for (const status of ['200', '400', '401', '500', '503']) expect(responses, at).toHaveProperty(status);
        if (method !== 'get') expect(responses, at).toHaveProperty('413');
        for (const [status, each] of Object.entries(responses)) {
          if (Number(status) < 400) expect(each, at).toHaveProperty('description');
          else expect(each, at).toEqual({ $ref: `#/components/responses/Problem${status}` });
        }
      }
    }
    const schema = { $ref: '#/components/schemas/Problem' };
    for (const [name, problem] of Object.entries(operator.document.components.responses)) {
      const { about } = PROBLEMS[Number(name.replace('Problem', '')) as ProblemStatus];
      expect(problem).toEqual({ description: about, content: { 'application/problem+json': { schema } } });
    }
  });

  it('names the required role of every route', () => {
    for (const [path, methods] of Object.entries(operator.document.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        const route = `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`;
        const { role, of } = ACCESS[route.replace(' /v1/', ' /')] ?? {};
        expect(operation, route).toMatchObject({ 'x-role': role, 'x-of': of });
        const needed = role === 'any' ? 'a role' : `the role \`${role?.replace(' or ', '` or `')}\``;
        expect(operation, route).toHaveProperty('description', expect.stringContaining(`Needs ${needed} `));
      }
    }
  });

  it('describes the headers If-Match and Idempotency-Key with their answers', () => {
    for (const [at, name, statuses] of [
      ['put /v1/locations/{locationId}', 'if-match', ['200', '201', '412']],
      ['patch /v1/locations/{locationId}', 'if-match', ['200', '412']],
      ['delete /v1/locations/{locationId}', 'if-match', ['200', '409', '412']],
      ['post /v1/locations/{locationId}/tokens', 'idempotency-key', ['200', '422']],
    ] as const) {
      const [method = '', path = ''] = at.split(' ');
      const described = operator.document.paths[path]?.[method];
      expect(described, at).toHaveProperty(
        'parameters',
        expect.arrayContaining([expect.objectContaining({ in: 'header', name, required: false })]),
      );
      expect(Object.keys(described?.responses ?? {}), at).toEqual(expect.arrayContaining([...statuses]));
    }
  });

  it('has valid JSON Schemas, and examples that match them', () => {
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema({ $id: 'api', ...operator.document });
    let examples = 0;
    for (const [name, schema] of Object.entries(operator.document.components.schemas)) {
      const validate = ajv.compile({ $ref: `api#/components/schemas/${name}` });
      for (const example of (schema as { examples?: unknown[] }).examples ?? []) {
        examples += 1;
        expect([name, validate(example), validate.errors]).toEqual([name, true, null]);
      }
    }
    expect(examples).toBeGreaterThan(2);
  });
});

describe('/metrics', () => {
  it('has the text format of Prometheus', async () => {
    const { text, headers } = await operator.get('/metrics');
    expect(headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
    expect(text).toMatch(/^expediter_ready 1$/m);
  });
});
