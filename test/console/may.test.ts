import { afterEach, describe, expect, it } from 'vitest';
import { adminOf, may } from '../../console/may.ts';
import { session } from '../../console/sign-in.ts';
import { has, type Right, type Role } from '../../src/core/operators/operator.ts';

afterEach(() => {
  session.value = { state: 'unknown' };
});

function signIn(...rights: Right[]): void {
  const at = '2027-01-31T18:00:00Z';
  session.value = { state: 'in', kind: 'person', name: 'Ada', rights, until: at, openedAt: at, version: '0.0.0' };
}

const ROLES: readonly Role[] = ['viewer', 'operator', 'member-data', 'admin'];
const SETS: Right[][] = [
  [],
  [{ roles: ['viewer'], locations: ['club-1'] }],
  [{ roles: ['operator'], locations: ['club-1', 'club-2'] }],
  [
    { roles: ['viewer'], locations: null },
    { roles: ['admin', 'operator'], locations: ['club-2'] },
  ],
  [{ roles: ['viewer', 'operator', 'member-data', 'admin'], locations: null }],
];

describe('what is offered', () => {
  it('is what the service allows, for each role and location', () => {
    for (const rights of SETS) {
      signIn(...rights);
      for (const role of ROLES) {
        for (const at of ['club-1', 'club-2', 'club-3', null]) {
          expect(may(role, at), `${JSON.stringify(rights)} ${role} ${at}`).toBe(has({ rights }, role, at));
        }
      }
    }
  });

  it('in a list is what the operator may do at any location', () => {
    signIn({ roles: ['operator'], locations: ['club-1'] });
    expect([may('operator', { anywhere: true }), may('admin', { anywhere: true })]).toEqual([true, false]);
  });

  it('is nothing without a session', () => {
    expect(may('viewer', 'club-1')).toBe(false);
  });

  it('of roles to give are the locations of which the operator is an admin', () => {
    signIn({ roles: ['viewer'], locations: null }, { roles: ['admin'], locations: ['club-2'] });
    expect(adminOf()).toEqual(['club-2']);
    signIn({ roles: ['admin'], locations: null });
    expect(adminOf()).toBeNull();
  });
});
