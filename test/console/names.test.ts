/** What people call locations. */
import { describe, expect, it } from 'vitest';
import { findLocation, namesOf } from '../../console/parts/names.tsx';

const HARBOUR = { locationId: '6f1c2e9a-0001', name: 'Harbour Club' };

describe('the name of a location', () => {
  it('is its id if it has no name', () => {
    expect(namesOf([{ locationId: 'club-1', name: null }]).get('club-1')).toBe('club-1');
    expect(namesOf([{ locationId: 'club-1', name: ' ' }]).get('club-1')).toBe('club-1');
  });

  it('has the end of the id where two have the same name', () => {
    const names = namesOf([HARBOUR, { locationId: '6f1c2e9a-0002', name: 'Harbour Club' }]);
    expect([...names.values()]).toEqual(['Harbour Club (a-0001)', 'Harbour Club (a-0002)']);
  });

  it('is found by its letters in any case, or by its id', () => {
    const names = namesOf([HARBOUR]);
    expect(findLocation(' harbour club ', names)).toBe(HARBOUR.locationId);
    expect(findLocation(HARBOUR.locationId, names)).toBe(HARBOUR.locationId);
    expect(findLocation('Harbour', names)).toBeUndefined();
  });
});
