import { afterEach, describe, expect, it } from 'vitest';
import { may, onlyConfigures, scopeOf } from '../../console/may.ts';
import { session } from '../../console/sign-in.ts';
import { has, type NeededRole, type Right } from '../../src/core/operators/operator.ts';

afterEach(() => {
  session.value = { state: 'unknown' };
});

type Given = Omit<Right, 'locationGroups'> & Partial<Right>;

function signIn(...given: Given[]): void {
  const rights = given.map((right) => ({ locationGroups: [], ...right }));
  const at = '2027-01-31T18:00:00Z';
  session.value = { state: 'in', kind: 'person', name: 'Ada', rights, until: at, openedAt: at, version: '0.0.0' };
}

const ROLES: readonly NeededRole[] = [
  'any',
  'metrics',
  'viewer',
  'operator',
  'member-data',
  'integrator',
  'admin',
  'operator or integrator',
];
const SETS: Given[][] = [
  [],
  [{ roles: ['viewer'], locations: ['club-1'] }],
  [{ roles: ['operator'], locations: ['club-1', 'club-2'] }],
  [{ roles: ['integrator'], locations: ['club-1'], locationGroups: ['brand'] }],
  [{ roles: ['metrics'], locations: null }],
  [{ roles: ['integrator', 'metrics'], locations: null }],
  [
    { roles: ['viewer'], locations: null },
    { roles: ['admin', 'operator'], locations: ['club-2'] },
  ],
  [{ roles: ['viewer', 'operator', 'member-data', 'admin'], locations: null }],
];

describe('the offered actions', () => {
  it('are those that the service allows, for each role and location', () => {
    for (const rights of SETS) {
      signIn(...rights);
      for (const role of ROLES) {
        for (const at of ['club-1', 'club-2', 'club-3', null]) {
          const all = rights.map((right) => ({ locationGroups: [], ...right }));
          expect(may(role, at), `${JSON.stringify(rights)} ${role} ${at}`).toBe(has({ rights: all }, role, at));
        }
      }
    }
  });

  it('include in a list each action that the operator may do at one of its locations or more', () => {
    signIn({ roles: ['operator'], locations: ['club-1'] });
    expect([may('operator', { anywhere: true }), may('admin', { anywhere: true })]).toEqual([true, false]);
  });

  it('are empty without a session', () => {
    expect(may('viewer', 'club-1')).toBe(false);
  });

  it('give roles only at locations and groups of which the operator is an admin', () => {
    signIn(
      { roles: ['viewer'], locations: null },
      { roles: ['admin'], locations: ['club-2', 'club-3'], locationGroups: ['brand'] },
    );
    expect(scopeOf('admin')).toEqual({ locations: ['club-2', 'club-3'], groups: ['brand'] });
    signIn({ roles: ['admin'], locations: null });
    expect(scopeOf('admin')).toBeNull();
  });

  it('include nothing about orders for an integrator without other roles', () => {
    signIn({ roles: ['integrator'], locations: null });
    expect(onlyConfigures()).toBe(true);
    signIn({ roles: ['integrator'], locations: ['club-1'] }, { roles: ['viewer'], locations: ['club-2'] });
    expect([onlyConfigures(), onlyConfigures('club-1'), onlyConfigures('club-2')]).toEqual([false, true, false]);
  });
});
