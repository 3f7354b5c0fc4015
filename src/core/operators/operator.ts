import { z } from 'zod';
import { Id } from '../domain/order.ts';

/**
 * What an operator may do. Whoever has any role reads what is not member data.
 *
 * - `viewer` nothing else
 * - `operator` retry, resolve, cancel, replay, pause, test
 * - `member-data` read what a member ordered or wrote
 * - `admin` who may what: tokens, grants, sessions, locations' tokens, the audit
 */
export const ROLES = ['viewer', 'operator', 'member-data', 'admin'] as const;
export const Role = z.enum(ROLES, { error: `is none of ${ROLES.join(', ')}` });
export type Role = z.infer<typeof Role>;

/** Roles at some locations, or with null at all of them. */
export const Right = z.object({
  roles: z.array(Role).min(1).meta({ description: 'viewer is in each.' }),
  locations: z.array(Id).min(1).max(500).nullable().meta({ description: 'Null: at all locations.' }),
});
export type Right = z.infer<typeof Right>;

/** Who does something, as the audit names them. */
export const Actor = z.object({
  kind: z.enum(['person', 'token', 'operator_token', 'command_line', 'nobody']).meta({
    description:
      'person: signed in by OIDC. token: a named token. operator_token: OPERATOR_TOKEN, whoever has it. command_line: a ' +
      'user of the machine. nobody: not authenticated.',
  }),
  id: z.string(),
  name: z.string(),
});
export type Actor = z.infer<typeof Actor>;

/** Who is at an operators' door. */
export type Operator = Actor & {
  rights: readonly Right[];
  /** True if nobody could be asked whether it still is so: Postgres did not answer. */
  isStale?: true;
  /** Of a browser's session. */
  session?: {
    sessionId: string;
    openedAt: Date;
    /** When they proved who they are, which may be long before that. */
    signedInAt: Date;
    expiresAt: Date;
  };
};

/** Whoever has OPERATOR_TOKEN: everything everywhere. */
export const BY_OPERATOR_TOKEN: Operator = {
  kind: 'operator_token',
  id: 'operator_token',
  name: 'OPERATOR_TOKEN',
  rights: [{ roles: [...ROLES], locations: null }],
};

/** The locations at which an operator has a role: null for all, none for an empty list. */
export function locationsOf({ rights }: Pick<Operator, 'rights'>, role: Role): readonly string[] | null {
  const having = rights.filter(({ roles }) => role === 'viewer' || roles.includes(role));
  if (having.some(({ locations }) => locations === null)) return null;
  return [...new Set(having.flatMap(({ locations }) => locations ?? []))];
}

/** @param locationId null for what belongs to no location, or to none yet */
export function has(operator: Pick<Operator, 'rights'>, role: Role, locationId: string | null): boolean {
  const locations = locationsOf(operator, role);
  return locations === null || (locationId !== null && locations.includes(locationId));
}
