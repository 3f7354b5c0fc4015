/** The functions of `expediter-platform`, as a mapper calls them. */
import { describe, expect, it } from 'vitest';
import {
  fromHundredths,
  joinName,
  joinStreet,
  mapEnum,
  mapLocation,
  phoneInCountry,
  roundTogether,
  splitStreet,
  timeInZone,
  timeSinceEpoch,
  toDecimal,
  minorUnits,
  toMinorUnits,
} from '../../src/platform-kit.ts';

const thrown = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return error;
  }
};

describe('an amount', () => {
  it.each([
    ['12.90', 'EUR', 1290],
    [' 12.9 ', 'EUR', 1290],
    ['12', 'EUR', 1200],
    ['12.', 'EUR', 1200],
    ['.5', 'EUR', 50],
    ['12.9000', 'EUR', 1290],
    ['-3.00', 'EUR', -300],
    ['-0.00', 'EUR', 0],
    ['1290', 'JPY', 1290],
    ['1290.00', 'JPY', 1290],
    ['1.29', 'KWD', 1290],
    ['90071992547409.91', 'EUR', Number.MAX_SAFE_INTEGER],
    [12.9, 'EUR', 1290],
    [0.1 + 0.2, 'EUR', 30],
    [1.005, 'KWD', 1005],
    [19.99 * 100, 'JPY', 1999],
  ])('of %j %s becomes %j minor units', (amount, currency, units) => {
    expect(toMinorUnits(amount, currency)).toBe(units);
  });

  const unreadable = ['12,90', '1.290,00', '1e3', '', '.', '€ 12.90', Number.NaN, Number.POSITIVE_INFINITY];
  it.each<[amount: string | number, currency: string, code: string]>([
    ...unreadable.map((amount): [string | number, string, string] => [amount, 'EUR', 'amount_unreadable']),
    ['12.905', 'EUR', 'amount_too_exact'],
    [12.905, 'EUR', 'amount_too_exact'],
    ['12.5', 'JPY', 'amount_too_exact'],
    ['90071992547409.92', 'EUR', 'amount_too_large'],
    ['12.90', 'eur', 'currency_unreadable'],
    ['12.90', '', 'currency_unreadable'],
  ])('%j %s is refused, and never rounded', (amount, currency, code) => {
    const error = thrown(() => toMinorUnits(amount, currency, 'grand'));
    expect(error).toMatchObject({
      name: 'MappingError',
      code,
      // The amount is right, and mostly the currency of all amounts is not.
      field: code === 'currency_unreadable' ? 'currency' : 'grand',
    });
    if (amount !== '' && amount !== '.') expect(String(error)).not.toContain(String(amount));
  });

  it.each([
    [1290, 1290],
    ['-5', -5],
  ])('%j in minor units becomes %j', (amount, units) => expect(minorUnits(amount)).toBe(units));
  it.each([12.9, '12.90', '', Number.NaN, 2 ** 53, null])('%j is refused as an amount in minor units', (amount) => {
    expect(thrown(() => minorUnits(amount, 'grand'))).toMatchObject({ name: 'MappingError', field: 'grand' });
  });

  it.each([
    [1290, 'EUR', 1290],
    ['99000', 'JPY', 990],
    [-99_000, 'JPY', -990],
    [0, 'JPY', 0],
    [330, 'KWD', 3300],
    [5, 'KWD', 50],
    [1234, 'CLF', 123_400],
  ])('of %j hundredths of %s becomes %j minor units', (amount, currency, units) => {
    expect(fromHundredths(amount, currency)).toBe(units);
  });
  it.each([
    [7920, 'JPY', 'amount_too_exact'],
    [12.9, 'EUR', 'amount_not_whole'],
    [null, 'EUR', 'value_missing'],
    [100, 'yen', 'currency_unreadable'],
    [Number.MAX_SAFE_INTEGER, 'KWD', 'amount_too_large'],
  ])('%j hundredths of %s are refused: %s', (amount, currency, code) => {
    expect(thrown(() => fromHundredths(amount, currency, 'grand'))).toMatchObject({ name: 'MappingError', code });
  });

  it.each([
    [[79.2], 'JPY', [79], 79, -0.2],
    [['79.2', 33.6, 0, 5], 'JPY', [79, 34, 0, 5], 118, 0.2],
    [[79.5, 79.5], 'JPY', [80, 79], 159, 0],
    // subtotal, discount, tax
    [[990, -99.5, 71.24], 'JPY', [990, -99, 71], 962, 0.26],
    [['4.754999', 0.1 + 0.2], 'EUR', [475, 30], 505, -0.4999],
    [[1.0005], 'KWD', [1001], 1001, 0.5],
    [[-0.4], 'JPY', [0], 0, 0.4],
    [[], 'JPY', [], 0, 0],
  ])('is rounded together with others: %j %s become %j', (given, currency, amounts, sum, rounded) => {
    expect(roundTogether(given, currency)).toEqual({ amounts, sum, rounded });
  });
  it.each(['', ' ', '12,90', '1e3', '0x10', '.', Number.NaN, null, 2 ** 53])('%j is not rounded', (amount) => {
    const error = thrown(() => roundTogether([1, amount], 'JPY', 'taxes'));
    expect(error).toMatchObject({ name: 'MappingError', field: 'taxes' });
  });

  it('survives the conversion to a decimal and back', () => {
    for (const currency of ['EUR', 'JPY', 'KWD', 'CLF']) {
      for (const units of [0, 1, 9, 10, 99, 100, 12_345, -1, -12_345]) {
        expect(toMinorUnits(toDecimal(units, currency), currency)).toBe(units);
      }
    }
  });
});

describe('a time', () => {
  it.each([
    ['2026-11-21T18:30', 'Europe/Berlin', '2026-11-21T18:30:00+01:00'],
    ['2026-07-21 18:30:15', 'Europe/Berlin', '2026-07-21T18:30:15+02:00'],
    ['2026-11-21T18:30', 'Asia/Kolkata', '2026-11-21T18:30:00+05:30'],
    ['2026-11-21T18:30:00.123', 'UTC', '2026-11-21T18:30:00+00:00'],
    ['2026-11-21T18:30:00Z', 'Europe/Berlin', '2026-11-21T19:30:00+01:00'],
    ['2026-11-21 18:30:00+0200', 'UTC', '2026-11-21T16:30:00+00:00'],
    ['20261121T183059.999-03', 'America/St_Johns', '2026-11-21T18:00:59-03:30'],
    ['1999-12-31T23:59:59,5', 'Asia/Kolkata', '1999-12-31T23:59:59+05:30'],
  ])('%j in the time zone %s becomes %s', (time, zone, found) => {
    expect(timeInZone(time, zone)).toBe(found);
  });

  it('is moved forward if the clock skips it, and is the earlier moment if the clock shows it twice', () => {
    expect(timeInZone('2026-03-29T02:30', 'Europe/Berlin')).toBe('2026-03-29T03:30:00+02:00');
    expect(timeInZone('2026-10-25T02:30', 'Europe/Berlin')).toBe('2026-10-25T02:30:00+02:00');
    // Half an hour, on the other side of the equator; and a day, on the other side of the date line.
    expect(timeInZone('2026-10-04T02:15', 'Australia/Lord_Howe')).toBe('2026-10-04T02:45:00+11:00');
    expect(timeInZone('2026-04-05T01:45', 'Australia/Lord_Howe')).toBe('2026-04-05T01:45:00+11:00');
    expect(timeInZone('2011-12-30T12:00', 'Pacific/Apia')).toBe('2011-12-31T12:00:00+14:00');
  });

  it.each([
    '2026-11-21',
    '18:30',
    '21.11.2026 18:30',
    '2026-02-30T18:30',
    '2026-11-21T24:00',
    '2026-11-21T18:30+25:00',
    '2026-11-21T18:30+01:00[Europe/Berlin]',
  ])('%j is refused', (time) => {
    const error = thrown(() => timeInZone(time, 'Europe/Berlin', 'wantedFor'));
    expect(error).toMatchObject({ code: 'time_unreadable', field: 'wantedFor' });
  });

  it('in an unknown time zone is refused', () => {
    const error = thrown(() => timeInZone('2026-11-21T18:30', 'Berlin', 'wantedFor'));
    expect(error).toMatchObject({ code: 'zone_unknown', field: 'wantedFor' });
  });

  it('as a number since 1970 is refused if it is not in this century', () => {
    expect(timeSinceEpoch(1_795_282_200, 's')).toBe('2026-11-21T17:30:00.000Z');
    expect(timeSinceEpoch('1795282200123', 'ms')).toBe('2026-11-21T17:30:00.123Z');
    for (const [count, unit] of [
      [1_795_282_200, 'ms'],
      [1_795_282_200_000, 's'],
      ['', 's'],
      ['soon', 's'],
    ] as const)
      expect(thrown(() => timeSinceEpoch(count, unit))).toMatchObject({ code: 'time_unreadable' });
  });
});

describe('a map of values', () => {
  it('translates a value, and refuses one that it does not have', () => {
    const types = { COURIER: 'delivery', TAKEAWAY: 'pickup' } as const;
    const type: 'delivery' | 'pickup' = mapEnum('COURIER', types);
    expect(type).toBe('delivery');
    for (const value of ['courier', 'constructor', '__proto__', '', null, undefined]) {
      const error = thrown(() => mapEnum(value, types, 'handover'));
      const code = typeof value === 'string' ? 'enum_unmapped' : 'value_missing';
      expect(error).toMatchObject({ code, field: 'handover' });
    }
    expect(mapLocation(17, { 17: 'club-1' })).toBe('club-1');
    expect(thrown(() => mapLocation(18, { 17: 'club-1' }))).toMatchObject({ code: 'location_unmapped' });
  });
});

const OF_ANY = (value: unknown): string => value as string;

it.each<[string, (value: unknown) => unknown, string]>([
  ['toMinorUnits', (value) => toMinorUnits(OF_ANY(value), 'EUR', 'grand'), 'amount_unreadable'],
  ['minorUnits', (value) => minorUnits(OF_ANY(value), 'grand'), 'amount_not_whole'],
  ['timeInZone', (value) => timeInZone(OF_ANY(value), 'UTC', 'grand'), 'time_unreadable'],
  ['timeSinceEpoch', (value) => timeSinceEpoch(OF_ANY(value), 's', 'grand'), 'time_unreadable'],
  ['phoneInCountry', (value) => phoneInCountry(OF_ANY(value), 'DE', 'grand'), 'phone_unreadable'],
  ['mapEnum', (value) => mapEnum(OF_ANY(value), { a: 1 }, 'grand'), 'enum_unmapped'],
  ['mapLocation', (value) => mapLocation(OF_ANY(value), { a: '1' }, 'grand'), 'location_unmapped'],
  ['a currency', (value) => toMinorUnits('1', OF_ANY(value)), 'currency_unreadable'],
  ['a zone', (value) => timeInZone('2026-11-21T18:30', OF_ANY(value), 'grand'), 'zone_unknown'],
  ['a country', (value) => phoneInCountry('1', OF_ANY(value), 'grand'), 'country_unreadable'],
])('%s refuses a missing value and one of a wrong type, with a code and the field', (_name, read, code) => {
  const field = code === 'currency_unreadable' ? 'currency' : 'grand';
  for (const value of [null, undefined]) {
    expect(thrown(() => read(value))).toMatchObject({
      name: 'MappingError',
      code: expect.toBeOneOf([code, 'value_missing']),
      field,
    });
  }
  for (const value of [{}, [1_795_282_200], true, Symbol('x')]) {
    expect(thrown(() => read(value))).toMatchObject({ name: 'MappingError', code, field });
  }
});

describe('names and streets', () => {
  it('are joined without those that are missing', () => {
    expect(joinName(' Ada ', null, '', 'Lovelace')).toBe('Ada Lovelace');
    expect(joinName(undefined, 'Murasaki')).toBe('Murasaki');
    expect(joinStreet('Lindenstraße', '14')).toBe('Lindenstraße 14');
    expect(joinStreet('Main Street', 14, { numberFirst: true })).toBe('14 Main Street');
    expect(joinStreet('Lindenstraße', null)).toBe('Lindenstraße');
  });

  it.each([
    ['Lindenstraße 14', 'Lindenstraße', '14'],
    ['Straße des 17. Juni 135a', 'Straße des 17. Juni', '135a'],
    ['Lindenstraße 14-16', 'Lindenstraße', '14-16'],
    ['Lindenstraße  14 - 16', 'Lindenstraße', '14 - 16'],
    ['221B Baker Street', 'Baker Street', '221B'],
    ['14, rue de la Paix', 'rue de la Paix', '14'],
    ['The Manor House', 'The Manor House', ''],
    ['', '', ''],
    ['Calle Mayor, 5', 'Calle Mayor', '5'],
    ['350 5th Avenue', '5th Avenue', '350'],
    ['1 Maja 5', '1 Maja', '5', 'PL'],
    ['12 Main Street Apt 4', 'Main Street Apt 4', '12', 'US'],
    ['500 E Main Street', 'E Main Street', '500', 'us'],
    ["12 - 14 King's Road", "King's Road", '12 - 14', 'GB'],
    ['12 rue du 8 Mai 1945', 'rue du 8 Mai 1945', '12', 'FR'],
    ['Rue du 8 Mai 1945', 'Rue du 8 Mai 1945', '', 'FR'],
    ['5th Avenue', '5th Avenue', '', 'US'],
    ['Straße des 17. Juni', 'Straße des 17. Juni', '', 'DE'],
    ['350', '350', '', 'US'],
    ['14', '14', ''],
  ])('%j is split as %j and %j', (line, street, houseNumber, country?: string) => {
    expect(splitStreet(line, country)).toEqual({ street, houseNumber });
  });
});
