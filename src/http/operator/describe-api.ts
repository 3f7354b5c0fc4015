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
import { ACCESS } from '../../operators/registry.ts';

/**
 * The shapes of core's words, by their names in the document. They have none where they stand: a provider's own copy of
 * the kit brings them again, and zod's registry knows a name once in a process.
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

/** Sections of the document, and of docs/operator-api.md. */
export const TAGS = [
  { name: 'Orders', description: 'On their way to a POS and back.' },
  { name: 'Webhooks', description: 'Webhooks as they arrived, and applying them anew.' },
  { name: 'Operators', description: 'Who may do this, and where they are signed in.' },
  { name: 'Audit', description: 'Who did what, and who was refused.' },
  { name: 'Locations', description: 'Clubs and restaurants, each served by one integration.' },
  { name: 'Traffic', description: 'What went through in the last day.' },
  { name: 'Process', description: 'This process, and this description.' },
];

const ABOUT = `What people on call and their programs may see and do. Every request carries a token as
\`Authorization: Bearer\`. What it may is said by roles, at all locations or at some: each route says which one it takes,
and where (\`x-role\`, \`x-of\`). What is at other locations is answered as if it were not there. Ids in a path are
percent-encoded. Times are RFC 3339. Whatever changes something, and every look at member data, is written down in the
audit, with who did it.`;

/** Where a route takes its role. */
const WHERE: Record<Access['of'], string> = {
  order: "at the order's location",
  webhook: "at the webhook's location",
  location: 'at the location',
  list: 'at a location, and is about those alone at which you have it',
  given: 'at each of the `locations` that are sent, without them at all',
  all: 'at all locations',
  none: 'at any location',
};

/** A route's schema, with who may use it. */
function withRole({ method, url, schema = {} }: RouteOptions): FastifySchema {
  const access = ACCESS[`${String(method)} ${url}`];
  if (access === undefined) return schema;
  const { role, of, reveals } = access;
  const also = reveals === undefined ? '' : ' What is member data takes `member-data` there as well.';
  const description = `${schema.description ?? ''} Takes the role \`${role}\` ${WHERE[of]}.${also}`.trim();
  return { ...schema, description, 'x-role': role, 'x-of': of } as FastifySchema;
}

/** Makes the OpenAPI 3.1 document of routes. The generator is loaded only here, since loading would delay the start. */
export async function describeApi(routes: readonly RouteOptions[]): Promise<object> {
  const { default: swagger } = await import('@fastify/swagger');
  name(Contents, z.toJSONSchema(CanonicalOrder, { io: 'input' }));
  for (const [id, word] of Object.entries(WORDS)) name(word, { ...z.globalRegistry.get(word), id });

  // The generator reads the routes of an application, so they are mounted on one that is never called.
  const described = fastify({ exposeHeadRoutes: false });
  described.setValidatorCompiler(validatorCompiler);
  described.setSerializerCompiler(serializerCompiler);
  await described.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Expediter: operator API', version, description: ABOUT, license: { name: 'Apache-2.0' } },
      servers: [{ url: '/' }],
      tags: [...TAGS],
      components: {
        securitySchemes: {
          operatorToken: { type: 'http', scheme: 'bearer', description: 'A named token, `exo_…`, or OPERATOR_TOKEN.' },
        },
      },
      security: [{ operatorToken: [] }],
    },
    transform: jsonSchemaTransform,
    transformObject(about) {
      const api = jsonSchemaTransformObject(about) as { components?: { schemas?: Record<string, object> } };
      // The generator adds a second copy of each shape for input. None is used.
      const shapes = Object.entries(api.components?.schemas ?? {}).filter(([name]) => !name.endsWith('Input'));
      return { ...api, components: { ...api.components, schemas: Object.fromEntries(shapes) } };
    },
  });
  for (const route of routes) {
    const { method, url } = route;
    described.route({ method, url, schema: withRole(route), handler: () => {} });
  }
  await described.ready();
  const document = described.swagger();
  await described.close();
  return document;
}

/** Names a shape that has no name itself. */
function name(shape: z.ZodType, about: z.core.GlobalMeta): void {
  if (z.globalRegistry.get(shape)?.id === undefined) z.globalRegistry.add(shape, about);
}
