import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { FastifyInstance, InjectOptions } from 'fastify';
import { request } from 'node:http';

export const OPERATOR_TOKEN = '5Km8cWmV0vEZf73OoZgNSqw6EIlsHKAyeP9JaBG6H8U';

export type OperatorAnswer = { status: number; body: Record<string, unknown>; text: string; headers: Headers };

export type ApiDocument = {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, unknown>; responses: Record<string, Answer> };
};
/** A service: its URL, or the app itself, which then needs not listen. */
export type Door = string | FastifyInstance;

type Answer = { content?: Record<string, { schema: object }> };
type Operation = {
  operationId: string;
  responses: Record<string, Answer & { $ref?: string }>;
};

export type Operator = {
  document: ApiDocument;
  get(path: string): Promise<OperatorAnswer>;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<OperatorAnswer>;
  /** Any method. */
  send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<OperatorAnswer>;
};

/** Compiled once for all files of a worker: it takes longer than most tests. */
const known = new Map<string, { document: ApiDocument; ajv: Ajv2020; validators: Map<string, ValidateFunction> }>();

function read(text: string): { document: ApiDocument; ajv: Ajv2020; validators: Map<string, ValidateFunction> } {
  let api = known.get(text);
  if (api === undefined) {
    const document = JSON.parse(text) as ApiDocument;
    const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true });
    ajv.addSchema({ $id: 'api', ...document });
    api = { document, ajv, validators: new Map() };
    known.set(text, api);
  }
  return api;
}

/** Where programs look for them: below no version. */
const UNVERSIONED = ['/metrics', '/openapi.json'];

/**
 * Calls a service's operator API, and validates every answer against the API's own OpenAPI document.
 * @returns methods that take a path below the API's, such as `/orders`; `/metrics` and `/openapi.json` are where they are
 */
export async function askOperator(door: Door, token = OPERATOR_TOKEN): Promise<Operator> {
  const authorization = `Bearer ${token}`;
  const { document, ajv, validators } = read(
    (await sendAsIs(door, '/openapi.json', { headers: { authorization } })).text,
  );

  const hold = (method: string, path: string, answer: OperatorAnswer): void => {
    const { template, operation } = operationOf(document, method, path);
    const own = operation.responses[answer.status];
    const described = own?.$ref === undefined ? own : document.components.responses[own.$ref.split('/').at(-1) ?? ''];
    if (described === undefined) throw new Error(`${method} ${template} does not say that it answers ${answer.status}`);
    const type = answer.headers.get('content-type')?.split(';')[0] ?? '';
    if (described.content === undefined && answer.text === '') return;
    if (described.content?.[type] === undefined)
      throw new Error(`${method} ${template} does not say that it is ${type}`);
    if (answer.status >= 400) mustBeProblem(answer);
    if (!type.endsWith('json')) return;
    const place = ['paths', template, method.toLowerCase(), 'responses', String(answer.status)];
    const pointer = [...(own?.$ref?.split('/').slice(1) ?? place), 'content', type, 'schema']
      .map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')))
      .join('/');
    const validate = validators.get(pointer) ?? ajv.compile({ $ref: `api#/${pointer}` });
    validators.set(pointer, validate);
    if (!validate(answer.body)) {
      throw new Error(`${method} ${template}: ${ajv.errorsText(validate.errors)}\n${answer.text.slice(0, 2000)}`);
    }
  };

  const send: Operator['send'] = async (method, below, body, headers) => {
    const path = UNVERSIONED.includes(below) ? below : `/v1${below}`;
    const answer = await sendAsIs(door, path, {
      method,
      headers: { authorization, ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
    });
    hold(method, path, answer);
    return answer;
  };
  return {
    document,
    get: (path) => send('GET', path),
    post: (path, body, headers) => send('POST', path, body, headers),
    send,
  };
}

/** @throws unless an error answer is a problem, of the answer's status */
export function mustBeProblem({ status, body, text, headers }: OperatorAnswer): void {
  const isRight =
    headers.get('content-type') === 'application/problem+json; charset=utf-8' &&
    /^urn:expediter:problem:[a-z-]+$/.test(String(body['type'])) &&
    /^[A-Z]/.test(String(body['title'])) &&
    body['status'] === status &&
    /./.test(String(body['detail'])) &&
    (![429, 503].includes(status) || /^\d+$/.test(headers.get('retry-after') ?? ''));
  if (!isRight) throw new Error(`this ${status} is no problem: ${headers.get('content-type')} ${text}`);
}

/** Sends a request. To a URL it goes without the corrections that `fetch` makes to a path. */
export function sendAsIs(
  door: Door,
  path: string,
  about: { method?: string; headers?: Record<string, string>; body?: string | Buffer | undefined } = {},
): Promise<OperatorAnswer> {
  const { method = 'GET', headers = {}, body } = about;
  if (typeof door !== 'string') return injectInto(door, { method, url: path, headers, body });
  const { hostname, port } = new URL(door);
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        resolve(answerOf(response.statusCode ?? 0, Object.entries(response.headersDistinct), text));
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

async function injectInto(
  app: FastifyInstance,
  about: { method: string; url: string; headers: Record<string, string>; body: string | Buffer | undefined },
): Promise<OperatorAnswer> {
  const { body, ...rest } = about;
  const answer = await app.inject({ ...rest, payload: body } as InjectOptions);
  return answerOf(answer.statusCode, Object.entries(answer.headers), answer.payload);
}

type HeaderValue = string | number | string[] | undefined;

function answerOf(status: number, headers: [string, HeaderValue][], text: string): OperatorAnswer {
  const all = headers.flatMap(([name, value]) =>
    [value ?? []].flat().map((each): [string, string] => [name, `${each}`]),
  );
  const answered = new Headers(all);
  const isJson = /^application\/(problem\+)?json\b/.test(answered.get('content-type') ?? '');
  return { status, body: isJson ? (JSON.parse(text) as Record<string, unknown>) : {}, text, headers: answered };
}

function operationOf(document: ApiDocument, method: string, path: string): { template: string; operation: Operation } {
  const parts = path.replace(/\?.*$/s, '').split('/');
  const fits = (template: string): boolean => {
    const expected = template.split('/');
    return expected.length === parts.length && expected.every((part, i) => part.startsWith('{') || part === parts[i]);
  };
  // A literal path takes precedence over one with a parameter.
  const [template] = Object.keys(document.paths)
    .filter((each) => fits(each) && document.paths[each]?.[method.toLowerCase()] !== undefined)
    .toSorted((a, b) => a.split('{').length - b.split('{').length);
  const operation = document.paths[template ?? '']?.[method.toLowerCase()];
  if (template === undefined || operation === undefined) throw new Error(`the API does not describe ${method} ${path}`);
  return { template, operation };
}
