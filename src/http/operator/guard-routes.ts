import { isDeepStrictEqual } from 'node:util';
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify';
import type { Pool } from 'pg';
import type { z } from 'zod';
import type { GivenRight } from '../../core/operators/given-right.ts';
import { beginAction, endAction, recordAction, type Action } from '../../core/operators/audit.ts';
import {
  groupsOf,
  has,
  hasAnywhere,
  locationsOf,
  mayPlace,
  OWN_IDS,
  Role,
  type NeededRole,
  type Operator,
} from '../../core/operators/operator.ts';
import { membersOf } from '../../core/locations/locations.ts';
import type { Now } from '../../core/postgres/database-clock.ts';
import { actOf, findThing, idsOf, isThing } from '../../operators/action-of.ts';
import { noSuch, type Access, type Options } from '../../operators/operation.ts';
import { ACCESS } from '../../operators/registry.ts';
import { actionFrom } from '../request.ts';
import type { AccessCause } from './answers.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set when the request is authenticated. */
    operator: Operator | undefined;
    /** Authenticates the operator again. Undefined if the credential is no longer valid, or gives no role any more. */
    identifyAgain: () => Promise<Operator | undefined>;
    /** The action in progress, which is already recorded in the audit. A route may set `after`, the action's result. */
    action: (Action & { id: string; after?: string }) | undefined;
    /** The locations of the `group` in the query of a `list` route. Undefined if there is none. */
    ofGroup: readonly string[] | undefined;
  }
  interface FastifyContextConfig {
    /** The permission that the route needs. Undefined for unknown paths, which need no permission. */
    access?: (Access & { route: string }) | undefined;
    /** Returns further fields of the audit action, read from the request's body. */
    about?: (request: FastifyRequest) => Promise<Partial<Action>>;
  }
}

/** A person may change permissions in a browser for this long after proving their identity. */
const PROVED_MS = 15 * 60_000;
/** A session may read member data for this long. After that, the person must sign in again. */
const READS_MEMBER_DATA_MS = 60 * 60_000;
/** At most this many refusals of one token or person are recorded in the audit per minute. */
const MOST_REFUSALS = 1_000;

type Guards = {
  scope: FastifyInstance;
  pool: Pool;
  now: Now;
  /** Returns whether a further refusal of this token or person is recorded. */
  isWritten: (id: string) => boolean;
};

/**
 * Checks each request against the permissions in `ACCESS`, and records actions and refusals in the audit. Another hook
 * must have set `request.operator`.
 */
export function guardRoutes(scope: FastifyInstance, { pool, now }: { pool: Pool; now: Now }): void {
  const guards: Guards = { scope, pool, now, isWritten: withinBound(MOST_REFUSALS, 60_000) };
  scope.addHook('onRoute', (route) => {
    route.config = { ...route.config, access: accessOf(route) };
  });

  scope.addHook('onRequest', async (request) => {
    const operator = operatorOf(request);
    const { access } = request.routeOptions.config;
    if (access === undefined) return;
    if (operator.isStale === true && access.whileAway !== true) {
      throw scope.httpErrors.serviceUnavailable(
        'Permissions cannot be checked because the database is unavailable. Try again later.',
      );
    }
    await checkPath(guards, request, access);
  });

  scope.addHook('preHandler', async (request) => {
    const { access } = request.routeOptions.config;
    if (access === undefined) return;
    await checkInput(guards, request, access);
    let action = await actionOfRequest(pool, request);
    if (action === undefined) return;
    // The permissions are read again, because the body may have taken long to arrive.
    const again = await request.identifyAgain();
    if (again === undefined || again.isStale === true) {
      throw scope.httpErrors.forbidden('Your permissions changed while this request was running. Try again.');
    }
    if (!isDeepStrictEqual(again.rights, operatorOf(request).rights)) {
      request.operator = again;
      await checkPath(guards, request, access);
      await checkInput(guards, request, access);
      action = await actionOfRequest(pool, request);
      if (action === undefined) return;
    }
    request.action = { ...action, id: await beginAction(pool, operatorOf(request), action) };
  });

  scope.addHook('onSend', async (request, { statusCode }, payload) => {
    // A stream begins before the action ends. Its route records the outcome.
    if (!(payload instanceof Readable)) await endActionOf(request, pool, statusCode);
  });
}

/** Checks what the path alone decides. The body has not arrived yet. */
async function checkPath(guards: Guards, request: FastifyRequest, access: Access): Promise<void> {
  const operator = operatorOf(request);
  const roles = rolesFor(access, request);
  const { of } = access;
  if (!isThing(of) || roles.every((role) => locationsOf(operator, role) === null)) {
    const may = (role: NeededRole): boolean => (of === 'all' ? has(operator, role, null) : hasAnywhere(operator, role));
    await refuseUnless(guards, roles.every(may), request, roles);
    return;
  }
  const found = await findThing(guards.pool, of, request.params as Options);
  const hasThere = (role: NeededRole): boolean =>
    found !== undefined && has(operator, role, found.locationId, found.groups);
  if (!hasThere(of === 'location' ? 'any' : 'viewer')) throw guards.scope.httpErrors.notFound(noSuch[of]);
  await refuseUnless(guards, roles.every(hasThere), request, roles, found?.locationId);
}

/** Checks what the query or the body decides. */
async function checkInput(guards: Guards, request: FastifyRequest, access: Access): Promise<void> {
  const { of } = access;
  const operator = operatorOf(request);
  const roles = rolesFor(access, request);
  if (of === 'list' || of === 'given') {
    const { locations, groups } = requestedScope(of, request);
    await refuseUnless(
      guards,
      roles.every(
        (role) =>
          locations.every((at) => has(operator, role, at)) &&
          (locationsOf(operator, role) === null ||
            groups.every((group) => groupsOf(operator, role as Role).includes(group))),
      ),
      request,
      roles,
    );
    const { group } = validatedInput(request) as { group?: string };
    if (of === 'list' && group !== undefined) request.ofGroup = await membersOf(guards.pool, group);
  }
  if (of === 'new') {
    const found = await findThing(guards.pool, 'location', request.params as Options);
    const { groups = [] } = validatedInput(request) as { groups?: readonly string[] };
    const may =
      found === undefined
        ? mayPlace(operator, String((request.params as Options)['locationId']), undefined, groups)
        : roles.every((role) => has(operator, role, found.locationId, found.groups));
    await refuseUnless(guards, may, request, roles);
  }
}

async function refuseUnless(
  guards: Guards,
  may: boolean,
  request: FastifyRequest,
  roles: readonly NeededRole[],
  /** Location of the order or webhook in the path; undefined if it was not found or the path names none. */
  locationId?: string | null,
): Promise<void> {
  const operator = operatorOf(request);
  const { session } = operator;
  const isOld = (since: Date | undefined, most: number): boolean =>
    since !== undefined && guards.now().getTime() - since.getTime() > most;
  const isProofOld = roles.includes('admin') && request.method !== 'GET' && isOld(session?.signedInAt, PROVED_MS);
  const isSessionOld = roles.includes('member-data') && isOld(session?.openedAt, READS_MEMBER_DATA_MS);
  if (may && !isProofOld && !isSessionOld) return;
  const { access } = request.routeOptions.config;
  // If the subject was not found, its id is not recorded: it could be any text.
  const about = locationId === undefined ? {} : { ...idsOf(request.params as Options), locationId };
  const action = { action: 'be refused', subject: access?.route, ...about };
  if (guards.isWritten(operator.id))
    await recordAction(guards.pool, operator, { ...action, ...actionFrom(request) }, { outcome: 'refused' });
  const forbidden = (says: string, cause: AccessCause): Error =>
    Object.assign(guards.scope.httpErrors.forbidden(says), { cause });
  if (may)
    throw forbidden('This action needs a recent sign-in. Sign in again.', {
      code: 'sign_in_again',
      proof: isProofOld,
    });
  const needed = roles.map((role) => (role === 'any' ? 'a role' : `the role ${role}`)).join(' and ');
  const but = access?.of === 'new' ? ` ${OWN_IDS}` : '';
  const missing = roles.flatMap((role) => Role.safeParse(role.split(' or ')[0]).data ?? []);
  throw forbidden(`You need ${needed} for this request.${but}`, { code: 'role_missing', roles: missing });
}

/** Records the outcome of a request's action in the audit, if the request is one. */
export async function endActionOf(request: FastifyRequest, pool: Pool, statusCode: number): Promise<void> {
  const { action } = request;
  if (action === undefined) return;
  const outcome = statusCode < 400 ? 'done' : statusCode < 500 ? 'refused' : 'failed';
  await endAction(pool, operatorOf(request), action, { outcome, after: action.after }).catch((error: unknown) => {
    request.log.warn({ err: error, auditId: action.id }, 'the outcome of an action was not recorded in the audit');
  });
}

/** Makes a function that returns whether an id has had at most `most` events in the current period of `whileMs`. */
export function withinBound(most: number, whileMs: number): (id: string) => boolean {
  const counts = new Map<string, number>();
  let current = 0;
  return (id) => {
    const at = Math.floor(performance.now() / whileMs);
    if (at !== current) counts.clear();
    current = at;
    const count = (counts.get(id) ?? 0) + 1;
    counts.set(id, count);
    return count <= most;
  };
}

export function operatorOf({ operator }: FastifyRequest): Operator {
  if (operator === undefined) throw new Error('a request was not authenticated');
  return operator;
}

/**
 * Returns the locations that an answer may cover; undefined means all locations. They are limited to the `group` in the
 * query, if it has one.
 * @param requested the `location` in the query or the body of a `list` route; undefined if there is none
 */
export function locationsWithin(request: FastifyRequest, requested?: string): readonly string[] | undefined {
  const operator = operatorOf(request);
  const role = request.routeOptions.config.access?.role ?? 'admin';
  const { ofGroup } = request;
  // For a requested location this is a second check: guardRoutes has already refused one where the role is missing.
  const may = requested === undefined ? locationsOf(operator, role) : has(operator, role, requested) ? [requested] : [];
  if (ofGroup === undefined) return may ?? undefined;
  return may === null ? ofGroup : may.filter((each) => ofGroup.includes(each));
}

/** The requested location of a list, or the scope of a new permission. null means all locations. */
function requestedScope(
  of: 'list' | 'given',
  { query, body }: FastifyRequest,
): { locations: readonly (string | null)[]; groups: readonly string[] } {
  if (of === 'given') {
    const { locations, locationGroups: groups } = body as z.output<typeof GivenRight>;
    return { locations: locations ?? (groups.length > 0 ? [] : [null]), groups };
  }
  const requested = [query, body].map((each) => (each as { location?: string } | null | undefined)?.location);
  return { locations: requested.filter((location) => location !== undefined), groups: [] };
}

function accessOf(about: RouteOptions & { routePath?: string }): (Access & { route: string }) | undefined {
  const { method, url, routePath } = about;
  if (routePath === '/*') return undefined;
  const route = `${method === 'HEAD' ? 'GET' : String(method)} ${routePath ?? url}`;
  const access = ACCESS[route];
  if (access === undefined) throw new Error(`no permission is defined for ${route}: add it to ACCESS`);
  if (method !== 'GET' && method !== 'HEAD' && access.does === undefined && access.onlyReads !== true) {
    throw new Error(`no audit action is defined for ${route}: add it to ACCESS`);
  }
  return { ...access, route };
}

function rolesFor({ role, reveals }: Access, { query }: FastifyRequest): NeededRole[] {
  return reveals?.when(query as Record<string, unknown>) ? [role, 'member-data'] : [role];
}

/** The query and the body, as far as the route has a schema for them. */
function validatedInput({ routeOptions: { schema }, query, body }: FastifyRequest): Options {
  return {
    ...(schema?.body !== undefined && (body as Options)),
    ...(schema?.querystring !== undefined && (query as Options)),
  };
}

/** Returns the action that the audit must record for a request; undefined if it records none. */
async function actionOfRequest(pool: Pool, request: FastifyRequest): Promise<Action | undefined> {
  const { access, about } = request.routeOptions.config;
  if (access === undefined) return undefined;
  const { dryRun } = validatedInput(request);
  const action = await actOf(
    pool,
    access,
    { params: request.params as Options, query: request.query as Options, isDry: dryRun === true },
    about && (() => about(request)),
  );
  return action && { ...action, ...actionFrom(request) };
}
