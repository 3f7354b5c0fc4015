import { isDeepStrictEqual } from 'node:util';
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify';
import type { Pool } from 'pg';
import { beginAction, endAction, recordAction, type Action } from '../../core/operators/audit.ts';
import { has, locationsOf, type Operator, type Right, type Role } from '../../core/operators/operator.ts';
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

/**
 * Checks each request against the permissions in `ACCESS`, and records actions and refusals in the audit. Another hook
 * must have set `request.operator`.
 */
export function guardRoutes(scope: FastifyInstance, { pool, now }: { pool: Pool; now: Now }): void {
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
    const roles = rolesFor(access, request);
    const { of } = access;
    if (isThing(of)) {
      if (roles.every((role) => locationsOf(operator, role) === null)) {
        await refuseUnless(true, request, roles);
        return;
      }
      const found = await findThing(pool, of, request.params as Options);
      if (found === undefined || !has(operator, 'viewer', found.locationId)) {
        throw scope.httpErrors.notFound(noSuch[of]);
      }
      const { locationId } = found;
      await refuseUnless(
        roles.every((role) => has(operator, role, locationId)),
        request,
        roles,
        locationId,
      );
      return;
    }
    const may = (role: Role): boolean => (of === 'all' ? has(operator, role, null) : isAnywhere(operator, role));
    await refuseUnless(roles.every(may), request, roles);
  });

  scope.addHook('preHandler', async (request) => {
    const { access } = request.routeOptions.config;
    if (access?.of === 'list' || access?.of === 'given') {
      const roles = rolesFor(access, request);
      const requested = requestedLocations(access.of, request);
      await refuseUnless(
        requested.every((at) => roles.every((role) => has(operatorOf(request), role, at))),
        request,
        roles,
      );
    }
    const action = await actionOfRequest(pool, request);
    if (action === undefined) return;
    // The permissions are read again, because the body may have taken long to arrive.
    const again = await request.identifyAgain();
    if (again?.isStale === true || !isDeepStrictEqual(again?.rights, operatorOf(request).rights)) {
      throw scope.httpErrors.forbidden('Your permissions changed while this request was running. Try again.');
    }
    request.action = { ...action, id: await beginAction(pool, operatorOf(request), action) };
  });

  scope.addHook('onSend', async (request, reply) => {
    const { action } = request;
    if (action === undefined) return;
    const { statusCode } = reply;
    const outcome = statusCode < 400 ? 'done' : statusCode < 500 ? 'refused' : 'failed';
    await endAction(pool, operatorOf(request), action, { outcome, after: action.after }).catch((error: unknown) => {
      request.log.warn({ err: error, auditId: action.id }, 'the outcome of an action was not recorded in the audit');
    });
  });

  const isWritten = withinBound(MOST_REFUSALS, 60_000);

  async function refuseUnless(
    may: boolean,
    request: FastifyRequest,
    roles: readonly Role[],
    /** Location of the order or webhook in the path; undefined if it was not found or the path names none. */
    locationId?: string | null,
  ): Promise<void> {
    const operator = operatorOf(request);
    const { session } = operator;
    const isOld = (since: Date | undefined, most: number): boolean =>
      since !== undefined && now().getTime() - since.getTime() > most;
    const isProofOld = roles.includes('admin') && request.method !== 'GET' && isOld(session?.signedInAt, PROVED_MS);
    const isSessionOld = roles.includes('member-data') && isOld(session?.openedAt, READS_MEMBER_DATA_MS);
    if (may && !isProofOld && !isSessionOld) return;
    const subject = request.routeOptions.config.access?.route;
    // If the subject was not found, its id is not recorded: it could be any text.
    const about = locationId === undefined ? {} : { ...idsOf(request.params as Options), locationId };
    const action = { action: 'be refused', subject, ...about };
    if (isWritten(operator.id))
      await recordAction(pool, operator, { ...action, ...actionFrom(request) }, { outcome: 'refused' });
    if (may) {
      throw Object.assign(scope.httpErrors.forbidden('This action needs a recent sign-in. Sign in again.'), {
        cause: { code: 'sign_in_again', proof: isProofOld } satisfies AccessCause,
      });
    }
    throw Object.assign(scope.httpErrors.forbidden(`You need the role ${roles.join(' and ')} for this request.`), {
      cause: { code: 'role_missing', roles: [...roles] } satisfies AccessCause,
    });
  }
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
 * Returns the locations that an answer may cover; undefined means all locations.
 * @param requested the `location` in the query or the body of a `list` route; undefined if there is none
 */
export function locationsWithin(request: FastifyRequest, requested?: string): readonly string[] | undefined {
  const operator = operatorOf(request);
  const role = request.routeOptions.config.access?.role ?? 'admin';
  if (requested === undefined) return locationsOf(operator, role) ?? undefined;
  // This is a second check: guardRoutes has already refused a location where the operator lacks the role.
  return has(operator, role, requested) ? [requested] : [];
}

/** The requested location of a list, or the locations of a new permission. null means all locations. */
function requestedLocations(of: 'list' | 'given', { query, body }: FastifyRequest): readonly (string | null)[] {
  if (of === 'given') return (body as { locations: Right['locations'] }).locations ?? [null];
  const requested = [query, body].map((each) => (each as { location?: string } | null | undefined)?.location);
  return requested.filter((location) => location !== undefined);
}

function accessOf({
  method,
  url,
  routePath,
}: RouteOptions & { routePath?: string }): (Access & { route: string }) | undefined {
  if (routePath === '/*') return undefined;
  const route = `${method === 'HEAD' ? 'GET' : String(method)} ${routePath ?? url}`;
  const access = ACCESS[route];
  if (access === undefined) throw new Error(`no permission is defined for ${route}: add it to ACCESS`);
  if (method !== 'GET' && method !== 'HEAD' && access.does === undefined) {
    throw new Error(`no audit action is defined for ${route}: add it to ACCESS`);
  }
  return { ...access, route };
}

function rolesFor({ role, reveals }: Access, { query }: FastifyRequest): Role[] {
  return reveals?.when(query as Record<string, unknown>) ? [role, 'member-data'] : [role];
}

function isAnywhere(operator: Operator, role: Role): boolean {
  return locationsOf(operator, role)?.length !== 0;
}

/** Returns the action that the audit must record for a request; undefined if it records none. */
async function actionOfRequest(pool: Pool, request: FastifyRequest): Promise<Action | undefined> {
  const { access, about } = request.routeOptions.config;
  if (access === undefined) return undefined;
  // A body counts only if the route takes one.
  const { dryRun } = (request.routeOptions.schema?.body === undefined ? {} : (request.body ?? {})) as Options;
  const action = await actOf(
    pool,
    access,
    { params: request.params as Options, query: request.query as Options, isDry: dryRun === true },
    about && (() => about(request)),
  );
  return action && { ...action, ...actionFrom(request) };
}
