import fastify, { type FastifySchema, type RouteOptions } from 'fastify';
import {
  jsonSchemaTransform,
  jsonSchemaTransformObject,
  serializerCompiler,
  validatorCompiler,
} from 'fastify-type-provider-zod';
import { z } from 'zod';
import { MemberState, Status } from '../../core/domain/lifecycle.ts';
import { StoredPlacementCause } from '../../core/domain/placement-cause.ts';
import { PlacementState } from '../../core/domain/placement.ts';
import { ShapeIssue } from '../../core/domain/shape-issues.ts';
import { WebhookAuth } from '../../core/domain/webhook-auth.ts';
import { DropCause, ReplayCause } from '../../core/domain/webhook-cause.ts';
import { WebhookOutcome } from '../../core/domain/webhook.ts';
import { CanonicalOrder } from '../../core/domain/order.ts';
import { Contents } from '../../core/orders/read-contents.ts';
import { version } from '../../core/domain/version.ts';
import type { Access } from '../../operators/operation.ts';
import { API_PATH } from '../../operators/registry.ts';

/**
 * Shapes of the core that have a name in the document. They get it here, not where they are defined: a provider package
 * may bring a second copy of these definitions, and zod's registry allows each name once per process.
 */
const WORDS: Record<string, z.ZodType> = {
  Status,
  MemberState,
  Outcome: WebhookOutcome,
  DropCause,
  ReplayCause,
  ShapeIssue,
  WebhookAuth,
  PlacementState,
  PlacementCause: StoredPlacementCause,
};

/** Sections of the document, and of docs/operator-api.md. `paths`: the first part of the paths of its routes. */
export const TAGS = [
  { name: 'Orders', description: 'Orders on their way to a POS and back.', paths: ['orders', 'live', 'search'] },
  { name: 'Webhooks', description: 'Webhooks as they arrived, and replaying them.', paths: ['webhooks'] },
  { name: 'Members', description: "What is stored about the platform's members.", paths: ['members'] },
  { name: 'Operators', description: 'Permissions of operators, and their sessions.', paths: ['operators'] },
  {
    name: 'Audit',
    description: 'What operators did and read, and which requests were refused.',
    paths: ['audit'],
  },
  {
    name: 'Locations',
    description: 'Clubs and restaurants, each served by one integration.',
    paths: ['locations', 'applications', 'availability', 'providers', 'tokens'],
  },
  { name: 'Signals', description: 'Who may send signals by HTTP.', paths: ['signal-tokens'] },
  { name: 'Traffic', description: 'Counts of the last day.', paths: ['traffic', 'scorecards'] },
  {
    name: 'Process',
    description: 'This process, and this description.',
    paths: ['doctor', 'metrics', 'openapi.json', 'spill'],
  },
];

/** The section of a path, with or without the prefix of the API. */
export function sectionOf(path: string): string {
  const [, first = ''] = path.replace(`${API_PATH}/`, '/').split('/');
  return TAGS.find(({ paths }) => paths.includes(first))?.name ?? '';
}

const ABOUT = `The API of operators: people on call, and their programs. Every request carries a token as
\`Authorization: Bearer\`. A token has roles at all locations or at some. Each route says which role it needs, and where
(\`x-role\`, \`x-of\`). Data of other locations is treated as if it did not exist. Ids in a path are percent-encoded.
Times are RFC 3339. Every error answer is a \`Problem\` (RFC 9457). Every change, and every read of member data, is recorded
in the audit with its operator.`;

/** For each value of `Access.of`: the locations at which a caller needs the route's role, in words. */
const WHERE: Record<Access['of'], string> = {
  order: "at the order's location",
  webhook: "at the webhook's location",
  location: 'at the location',
  new: 'at the location; to create one, at all locations or at all groups that the body gives it',
  list: 'at one location or more. The answer covers only the locations where you have this role',
  given: 'at each location in `locations` and each group in `locationGroups`, or at all locations if both are missing',
  all: 'at all locations',
  none: 'at one location or more',
};

/** Returns a route's schema with its section. Its description then says which role the route needs. */
function inFull({ schema: given, url, config }: RouteOptions): FastifySchema {
  const schema = { ...given, tags: [sectionOf(url)] };
  const access = config?.access;
  if (access === undefined) return schema;
  const { role, of, reveals } = access;
  const also = reveals === undefined ? '' : ' To get member data you also need the role `member-data` there.';
  const needs = role === 'any' ? 'a role' : `the role \`${role.replace(' or ', '` or `')}\``;
  const description = `${given?.description ?? ''} Needs ${needs} ${WHERE[of]}.${also}`.trim();
  return { ...schema, description, 'x-role': role, 'x-of': of } as FastifySchema;
}

/**
 * Selects the shapes that a part of the document refers to, sorted by name. The generator gives those of every module
 * that is loaded, in the order of loading, and a second copy of each for input.
 */
function usedShapes(by: object, all: Readonly<Record<string, object>>): Record<string, object> {
  const used = new Set<string>();
  const follow = (part: object): void => {
    for (const [, name = ''] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
      const shape = Object.hasOwn(all, name) ? all[name] : undefined;
      if (shape === undefined || used.has(name)) continue;
      used.add(name);
      follow(shape);
    }
  };
  follow(by);
  return Object.fromEntries([...used].toSorted().map((name) => [name, all[name] ?? {}]));
}

/** Makes the OpenAPI 3.1 document. The generator is imported only if it is needed, because it would slow the start. */
export async function describeApi(routes: readonly RouteOptions[]): Promise<object> {
  const { default: swagger } = await import('@fastify/swagger');
  name(Contents, z.toJSONSchema(CanonicalOrder, { io: 'input' }));
  for (const [id, word] of Object.entries(WORDS)) name(word, { ...z.globalRegistry.get(word), id });

  // The generator reads the routes of an application, so we mount them on an application that gets no requests.
  const described = fastify({ exposeHeadRoutes: false });
  described.setValidatorCompiler(validatorCompiler);
  described.setSerializerCompiler(serializerCompiler);
  await described.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Expediter: operator API', version, description: ABOUT, license: { name: 'Apache-2.0' } },
      servers: [{ url: '/' }],
      tags: TAGS.map(({ name, description }) => ({ name, description })),
      components: {
        securitySchemes: {
          operatorToken: { type: 'http', scheme: 'bearer', description: 'A named token, `exo_…`, or OPERATOR_TOKEN.' },
        },
      },
      security: [{ operatorToken: [] }],
    },
    transform: jsonSchemaTransform,
    transformObject(about) {
      const api = jsonSchemaTransformObject(about) as Described;
      const responses = nameProblems(api);
      const schemas = usedShapes({ paths: api.paths, responses }, api.components?.schemas ?? {});
      return { ...api, components: { ...api.components, responses, schemas } };
    },
  });
  for (const route of routes) {
    const { method, url } = route;
    described.route({ method, url, schema: inFull(route), handler: () => {} });
  }
  await described.ready();
  const document = described.swagger();
  await described.close();
  return document;
}

type Described = {
  paths?: Record<string, Record<string, { responses: Record<string, object> }>>;
  components?: { schemas?: Record<string, object> };
};

/** Refers to each problem by its status, because it is the same for every route. @returns the problems by their names */
function nameProblems({ paths = {} }: Described): Record<string, object> {
  const named: Record<string, object> = {};
  for (const { responses } of Object.values(paths).flatMap((methods) => Object.values(methods))) {
    for (const [status, answer] of Object.entries(responses)) {
      if (Number(status) < 400) continue;
      named[`Problem${status}`] = answer;
      responses[status] = { $ref: `#/components/responses/Problem${status}` };
    }
  }
  return named;
}

/** Names a shape that has no name yet. */
function name(shape: z.ZodType, about: z.core.GlobalMeta): void {
  if (z.globalRegistry.get(shape)?.id === undefined) z.globalRegistry.add(shape, about);
}
