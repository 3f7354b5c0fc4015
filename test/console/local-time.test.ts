import { expect, it } from 'vitest';
import { offeredCountries } from '../../console/parts/local-time.ts';

it('each name of a country that is offered leads to one code, the present one', () => {
  const codes = Map.groupBy(offeredCountries(), ([, name]) => name);
  expect(['Germany', 'United Kingdom', 'Serbia'].map((name) => codes.get(name)?.map(([code]) => code))).toEqual([
    ['DE'],
    ['GB'],
    ['RS'],
  ]);
  expect([...codes].filter(([, some]) => some.length > 1)).toEqual([]);
});
