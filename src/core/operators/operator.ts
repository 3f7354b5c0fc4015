import { z } from 'zod';
import { Id } from '../domain/order.ts';

/**
 * The roles of operators. Every role may read everything except member data.
 *
 * - `viewer` may do nothing else
 * - `operator` may retry, resolve, cancel, replay, pause, test
 * - `member-data` may read the texts and orders of members
 * - `admin` manages rights: tokens, grants, sessions, locations' tokens, the audit
 */
export const ROLES = ['viewer', 'operator', 'member-data', 'admin'] as const;
export const Role = z.enum(ROLES, { error: `is none of ${ROLES.join(', ')}` });
export type Role = z.infer<typeof Role>;

/** Roles at some locations. */
export const Right = z.object({
  roles: z.array(Role).min(1).meta({ description: 'Each role includes viewer.' }),
  locations: z.array(Id).min(1).max(500).nullable().meta({ description: 'Null means all locations.' }),
});
export type Right = z.infer<typeof Right>;

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

/** An authenticated operator. */
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
  rights: [{ roles: [...ROLES], locations: null }],
};

/** The locations at which an operator has a role. Null means all locations, an empty list means none. */
export function locationsOf({ rights }: Pick<Operator, 'rights'>, role: Role): readonly string[] | null {
  const having = rights.filter(({ roles }) => role === 'viewer' || roles.includes(role));
  if (having.some(({ locations }) => locations === null)) return null;
  return [...new Set(having.flatMap(({ locations }) => locations ?? []))];
}

/** @param locationId null if the action is about no location, or about one that does not exist yet */
export function has(operator: Pick<Operator, 'rights'>, role: Role, locationId: string | null): boolean {
  const locations = locationsOf(operator, role);
  return locations === null || (locationId !== null && locations.includes(locationId));
}
