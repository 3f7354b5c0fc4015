import { z } from 'zod';
import { Id } from '../domain/order.ts';
import { gives } from './gives.ts';

/**
 * The roles of operators. Every role except `integrator` and `metrics` may read everything except member data.
 *
 * - `viewer` may do nothing else
 * - `operator` may retry, resolve, cancel, replay, pause, test
 * - `member-data` may read the texts and orders of members
 * - `integrator` configures locations and their webhook tokens, and may read only locations: no orders, no webhooks
 * - `admin` manages rights: tokens, grants, sessions, the audit
 * - `metrics` may read only the metrics of a process: for Prometheus
 */
export const ROLES = ['viewer', 'operator', 'member-data', 'integrator', 'admin', 'metrics'] as const;
export const Role = z.enum(ROLES, { error: `must be one of ${ROLES.join(', ')}` });
export type Role = z.infer<typeof Role>;
/** The role that a route needs. `any`: one role or more besides `metrics`, also `integrator` alone. */
export type NeededRole = Role | 'operator or integrator' | 'any';

export const Right = z.object({
  roles: z.array(Role).min(1).meta({ description: 'Each role except integrator and metrics includes viewer.' }),
  locations: z.array(Id).nullable().meta({
    description: 'Null means all locations. For a signed-in operator, the list includes those of the groups.',
  }),
  locationGroups: z.array(Id).meta({ description: 'The roles also apply at all locations of these groups.' }),
});
export type Right = z.infer<typeof Right>;

export type RoleAt = { role: Role; group: string };
type Groups = readonly string[];
/** Whether an operator may create a location (`before` is undefined), or change its groups. See `mayPlace` */
export type MayPlace = (before: Groups | undefined, after: Groups, given: readonly RoleAt[]) => boolean;

/** The author of an action, as the audit names them. */
export const Actor = z.object({
  kind: z.enum(['person', 'token', 'operator_token', 'command_line', 'nobody']).meta({
    description:
      'person: signed in by OIDC. token: a named token. operator_token: any holder of OPERATOR_TOKEN. command_line: a user ' +
      'of the machine. nobody: not authenticated.',
  }),
  id: z.string(),
  name: z.string(),
});
export type Actor = z.infer<typeof Actor>;

export type Operator = Actor & {
  rights: readonly Right[];
  /** True if the rights may be outdated, because Postgres did not answer. */
  isStale?: true;
  /** Set if the request came from a browser with a session. */
  session?: {
    sessionId: string;
    openedAt: Date;
    /** When they authenticated, which may be long before `openedAt`. */
    signedInAt: Date;
    expiresAt: Date;
  };
};

/** The holder of OPERATOR_TOKEN, with all roles at all locations. */
export const BY_OPERATOR_TOKEN: Operator = {
  kind: 'operator_token',
  id: 'operator_token',
  name: 'OPERATOR_TOKEN',
  rights: [{ roles: [...ROLES], locations: null, locationGroups: [] }],
};

/** The locations at which an operator has a role. Null means all locations, an empty list means none. */
export function locationsOf({ rights }: Pick<Operator, 'rights'>, role: NeededRole): readonly string[] | null {
  const having = rights.filter((right) => gives(right, role));
  if (having.some(({ locations }) => locations === null)) return null;
  return [...new Set(having.flatMap(({ locations }) => locations ?? []))];
}

/**
 * @param locationId null if the action is about no location, or about one that does not exist yet
 * @param groups the location's groups as they are now, if they were read: it may have joined one since the rights were read
 */
export function has(
  { rights }: Pick<Operator, 'rights'>,
  role: NeededRole,
  locationId: string | null,
  groups: readonly string[] = [],
): boolean {
  return rights.some(
    (right) =>
      gives(right, role) &&
      (right.locations === null ||
        (locationId !== null && right.locations.includes(locationId)) ||
        groups.some((group) => right.locationGroups.includes(group))),
  );
}

/** Whether an operator has a role at a location, or at a group, which may have no location yet. */
export function hasAnywhere({ rights }: Pick<Operator, 'rights'>, role: NeededRole): boolean {
  return rights.some(
    (right) => gives(right, role) && (right.locations?.length !== 0 || right.locationGroups.length > 0),
  );
}

/** The locations and the groups at which an operator has a role. Undefined means all locations. */
export type Scope = { locations: readonly string[]; groups: readonly string[] } | undefined;

export function scopeOf(operator: Pick<Operator, 'rights'>, role: NeededRole): Scope {
  const locations = locationsOf(operator, role);
  return locations === null ? undefined : { locations, groups: groupsOf(operator, role) };
}

/** The groups at whose locations an operator has a role. */
export function groupsOf({ rights }: Pick<Operator, 'rights'>, role: NeededRole): readonly string[] {
  return rights.filter((right) => gives(right, role)).flatMap(({ locationGroups }) => locationGroups);
}

export const OWN_IDS =
  'With this role at a group only, you create locations whose id begins with the group and a colon: brand-nord:7.';

/**
 * Whether an integrator may create a location with these groups (`before` is undefined), or change its groups. With a
 * group, a location gets the people who have roles at that group. So an integrator of some groups may add and remove only
 * these groups, and creates locations only in them, with ids that begin with one of them: he neither learns of other ids
 * nor takes them.
 * @param given the roles that others have at the groups that are added to a location. The integrator hands these roles on, so
 *   they must have them too, at the location and at the group
 */
export function mayPlace(
  operator: Pick<Operator, 'rights'>,
  locationId: string,
  before: readonly string[] | undefined,
  after: readonly string[],
  given: readonly RoleAt[] = [],
): boolean {
  if (locationsOf(operator, 'integrator') === null) return true;
  const own = new Set(groupsOf(operator, 'integrator'));
  // guard: ids-of-a-group
  const isOwnId = after.some((group) => own.has(group) && locationId.startsWith(`${group}:`));
  if (before === undefined ? !isOwnId : !has(operator, 'integrator', locationId, before)) return false;
  const [old, now] = [new Set(before), new Set(after)];
  const changed = [...old, ...now].filter((group) => old.has(group) !== now.has(group));
  const hasToo = ({ role, group }: RoleAt): boolean =>
    has(operator, role, before === undefined ? null : locationId, before) &&
    (locationsOf(operator, role) === null || groupsOf(operator, role).includes(group));
  // guard: groups-give-no-more
  return changed.every((group) => own.has(group)) && given.every(hasToo);
}
