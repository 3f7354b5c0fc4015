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
    /** Set once the door knows who it is. */
    operator: Operator | undefined;
    /** Who it is by now: undefined once that may nothing any more. */
    identifyAgain: () => Promise<Operator | undefined>;
    /** What is under way, and written down: a route may say how it ended. */
    action: (Action & { id: string; after?: string }) | undefined;
  }
  interface FastifyContextConfig {
    /** Undefined for what is not there, and so nobody's. */
    access?: (Access & { route: string }) | undefined;
    /** What else a request's act is about, by its body. */
    about?: (request: FastifyRequest) => Promise<Partial<Action>>;
  }
}

/** Time for which somebody who proved who they are may change permissions in a browser. Later they prove it again. */
const PROVED_MS = 15 * 60_000;
/** Time for which a session reads member data. Later it takes a new one. */
const READS_MEMBER_DATA_MS = 60 * 60_000;
/** Refusals of one operator, token or person, that are written down in a minute. */
const MOST_REFUSALS = 1_000;

/**
 * Lets each route only be used by whom `ACCESS` says, where it says, and writes down what they do, and what they were
 * refused. Behind a hook that sets `request.operator`.
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
      const asked = askedOf(access.of, request);
      await refuseUnless(
        asked.every((at) => roles.every((role) => has(operatorOf(request), role, at))),
        request,
        roles,
      );
    }
    const action = await actOfRequest(pool, request);
    if (action === undefined) return;
    // Its body may have taken long to come.
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
      request.log.warn({ err: error, auditId: action.id }, 'how an act ended was not written down');
    });
  });

  const isWritten = withinBound(MOST_REFUSALS, 60_000);

  async function refuseUnless(
    may: boolean,
    request: FastifyRequest,
    roles: readonly Role[],
    /** Where what it is about is, if that is there. */
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
    // What is not there is named by nothing but what was typed.
    const about = locationId === undefined ? {} : { ...idsOf(request.params as Options), locationId };
    const action = { action: 'be refused', subject, ...about };
    if (isWritten(operator.id))
      await recordAction(pool, operator, { ...action, ...actionFrom(request) }, { outcome: 'refused' });
    if (may) {
      throw Object.assign(scope.httpErrors.forbidden('This action needs a recent sign-in. Sign in again.'), {
        cause: { code: 'sign_in_again', proof: isProofOld } satisfies AccessCause,
      });
    }
    throw Object.assign(scope.httpErrors.forbidden(`This request needs the role ${roles.join(' and ')} there.`), {
      cause: { code: 'role_missing', roles: [...roles] } satisfies AccessCause,
    });
  }
}

/** Tells whether somebody is within a bound in this while. Who asks again and again for what they may not fills no audit. */
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

/** The operator of a request behind a door. */
export function operatorOf({ operator }: FastifyRequest): Operator {
  if (operator === undefined) throw new Error('a request came past its door');
  return operator;
}

/**
 * The locations that an answer may be about.
 * @param asked the `location` that it is asked about: a route of `list` names it so, in its query or its body
 * @returns undefined for all of them
 */
export function locationsWithin(request: FastifyRequest, asked?: string): readonly string[] | undefined {
  const operator = operatorOf(request);
  const role = request.routeOptions.config.access?.role ?? 'admin';
  if (asked === undefined) return locationsOf(operator, role) ?? undefined;
  // The guard has refused what is elsewhere.
  return has(operator, role, asked) ? [asked] : [];
}

/** The location that a list is asked about; the locations where something is given, null for all. */
function askedOf(of: 'list' | 'given', { query, body }: FastifyRequest): readonly (string | null)[] {
  if (of === 'given') return (body as { locations: Right['locations'] }).locations ?? [null];
  const asked = [query, body].map((each) => (each as { location?: string } | null | undefined)?.location);
  return asked.filter((location) => location !== undefined);
}

function accessOf({
  method,
  url,
  routePath,
}: RouteOptions & { routePath?: string }): (Access & { route: string }) | undefined {
  if (routePath === '/*') return undefined;
  const route = `${method === 'HEAD' ? 'GET' : String(method)} ${routePath ?? url}`;
  const access = ACCESS[route];
  if (access === undefined) throw new Error(`nothing says who may use ${route}: add it to ACCESS`);
  if (method !== 'GET' && method !== 'HEAD' && access.does === undefined) {
    throw new Error(`nothing says what ${route} does, for the audit: add it to ACCESS`);
  }
  return { ...access, route };
}

function rolesFor({ role, reveals }: Access, { query }: FastifyRequest): Role[] {
  return reveals?.when(query as Record<string, unknown>) ? [role, 'member-data'] : [role];
}

function isAnywhere(operator: Operator, role: Role): boolean {
  return locationsOf(operator, role)?.length !== 0;
}

/** What a request is about to do that is written down. */
async function actOfRequest(pool: Pool, request: FastifyRequest): Promise<Action | undefined> {
  const { access, about } = request.routeOptions.config;
  if (access === undefined) return undefined;
  // Of a route that takes no body it says nothing.
  const { dryRun } = (request.routeOptions.schema?.body === undefined ? {} : (request.body ?? {})) as Options;
  const action = await actOf(
    pool,
    access,
    { params: request.params as Options, query: request.query as Options, isDry: dryRun === true },
    about && (() => about(request)),
  );
  return action && { ...action, ...actionFrom(request) };
}
