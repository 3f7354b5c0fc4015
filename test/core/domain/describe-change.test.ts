import { describe, expect, it } from 'vitest';
import { changesIn, describeChange } from '../../../src/core/domain/describe-change.ts';

describe('a change', () => {
  it.each([
    [{ field: 'settings.secret', before: 'set', after: 'set' }, 'Secret: changed'],
    [{ field: 'settings.secret', before: 'set', after: 'changed' }, 'Secret: changed'],
    [{ field: 'settings.secret', before: null, after: 'set' }, 'Secret: set'],
    [{ field: 'settings.secret', before: 'set', after: null }, 'Secret: removed'],
    [{ field: 'settings.ordersUrl', before: null, after: 'https://a.example' }, 'Orders URL: https://a.example'],
    [{ field: 'settings.statusUrl', before: 'https://a.example', after: 'https://a.example' }, 'Status URL: changed'],
    [{ field: 'name', before: 'Nord', after: 'Trattoria Nord' }, 'Name: Nord → Trattoria Nord'],
    [{ field: 'name', before: null, after: '[draft' }, 'Name: [draft'],
    [{ field: 'groups', before: '["nord"]', after: '["nord","süd"]' }, 'Groups: nord → nord, süd'],
    [{ field: 'contacts', before: 'set', after: 'set' }, 'Contacts: changed'],
    [{ field: 'backOfficeUrl', before: 'https://a.example', after: null }, 'Back office of the POS: removed'],
    [{ field: 'settings.unsigned', before: 'false', after: 'true' }, 'Unsigned: no → yes'],
    [
      { field: 'settings.itemMap.classic-burger', before: '7', after: '{"item":"8"}' },
      'Item map, classic-burger: 7 → Item 8',
    ],
    [{ field: 'settings.itemMap', before: '{"a":"1","b…', after: '{"a":"1","c…' }, 'Item map: changed'],
  ])('%j is "%s"', (change, sentence) => {
    expect(describeChange(change)).toBe(sentence);
  });

  it('of the integration names the vendors', () => {
    const names = { vendor: (integration: string) => `the vendor ${integration}`, location: String };
    const change = { field: 'integration', before: 'a', after: 'b' };
    expect(describeChange(change, names)).toBe('POS: the vendor a → the vendor b');
  });

  it('of an action is read from its two sides', () => {
    expect(changesIn('{"a":"1","b":null}', '{"a":"2","b":"set"}')).toEqual([
      { field: 'a', before: '1', after: '2' },
      { field: 'b', before: null, after: 'set' },
    ]);
    expect(changesIn('open', 'paused')).toBeUndefined();
  });
});
