import { describe, expect, it } from 'vitest';
import { NOTICE_REASONS } from '../../src/core/contacts/contact.ts';
import { problemsOf, withoutChanged } from '../../console/set-up/field-problems.ts';
import { labelOf } from '../../src/core/domain/label-of.ts';
import { editOf, moveEdit, patchOf } from '../../console/set-up/location-edit.ts';
import { minorUnitsOf } from '../../console/set-up/minor-units.ts';
import { aboutIds, aboutOf, NO_ABOUT, NO_CONTACT, readAbout } from '../../console/set-up/about-draft.ts';
import {
  draftOf,
  fieldsOf,
  hiddenInWords,
  idsOf,
  mergePatchOf,
  readDraft,
  type Field,
  type Schema,
} from '../../console/set-up/settings-fields.ts';
import type { z } from 'zod';
import { newSettingsOf } from '../../src/core/locations/locations.ts';
import { LocationDetails } from '../../src/core/locations/put-location.ts';
import { randomSecret } from '../../console/set-up/random-key.ts';
import { settingsSchema } from '../../src/core/locations/describe-settings.ts';
import { registry } from '../../src/providers/index.ts';

const TEXT: Schema = { type: 'string' };
const SCHEMA: Schema = {
  type: 'object',
  required: ['ordersUrl', 'ids'],
  properties: {
    prep: { type: 'integer', default: 15 },
    secret: { ...TEXT, writeOnly: true },
    ordersUrl: { ...TEXT, format: 'uri', description: 'Where orders go.' },
    mode: { type: 'string', enum: ['guest', 'attach'], default: 'guest' },
    isOpen: { type: 'boolean' },
    unsigned: { type: 'boolean', const: true },
    ids: { type: 'object', properties: { pickup: TEXT, delivery: TEXT }, required: ['pickup'] },
    minutes: { type: 'object', default: {}, properties: { pickup: { type: 'integer' } } },
    itemMap: { type: 'object', default: {}, additionalProperties: TEXT },
    menu: { type: 'object', additionalProperties: { type: 'object', properties: { ref: TEXT } } },
    account: { anyOf: [TEXT, { type: 'integer' }] },
    keys: { anyOf: [TEXT, { type: 'array' }], writeOnly: true },
  },
};
/** The fields of a location without a value, except its POS. */
const NOTHING_KNOWN = {
  name: null,
  country: null,
  timeZone: null,
  address: null,
  backOfficeUrl: null,
  groups: [],
  contacts: [],
};
const fields = fieldsOf(SCHEMA);
const find = (id: string): Field => {
  const found = [...fields, ...fields.flatMap((field) => field.fields)].find((field) => field.id === id);
  if (found === undefined) throw new Error(`no field ${id}`);
  return found;
};
const read = (written: Record<string, unknown>, base: object = {}) =>
  readDraft(fields, { ...draftOf(fields, base), ...written } as ReturnType<typeof draftOf>, base);

describe('the form of a schema', () => {
  it('has an input for each setting: required settings come first, and settings with a default last', () => {
    const kinds = Object.fromEntries(fields.map(({ id, kind }) => [id, kind]));
    expect(kinds).toEqual({
      ordersUrl: 'url',
      ids: 'fields',
      secret: 'secret',
      isOpen: 'choice',
      unsigned: 'choice',
      minutes: 'fields',
      itemMap: 'map',
      menu: 'json',
      account: 'text',
      keys: 'secret',
      prep: 'number',
      mode: 'choice',
    });
    expect(fields.map(({ id }) => id).slice(0, 2)).toEqual(['ordersUrl', 'ids']);
    expect(fields.map(({ id }) => id).slice(-2)).toEqual(['prep', 'mode']);
    expect(find('ordersUrl')).toMatchObject({ label: 'Orders URL', isRequired: true, description: 'Where orders go.' });
    expect(find('ids.pickup').isRequired).toBe(true);
    expect(find('mode').options.map(({ name }) => name)).toEqual(['default: guest', 'guest', 'attach']);
    expect(find('unsigned').options.map(({ value }) => value)).toEqual(['', 'true']);
  });

  it('can be built from the schema of every integration, and never shows a secret', () => {
    for (const provider of registry.values()) {
      const schema = settingsSchema(provider) as Schema;
      // Our mark for what is shown is none of JSON Schema.
      expect(JSON.stringify(schema)).not.toContain('"shown"');
      const made = fieldsOf(schema);
      expect(made.map(({ id }) => id).toSorted()).toEqual(Object.keys(schema.properties ?? {}).toSorted());
      for (const { id, kind } of made) {
        const { writeOnly, format } = schema.properties?.[id] ?? {};
        if (writeOnly === true) expect([id, kind]).toEqual([id, format === 'uri' ? 'url' : 'secret']);
      }
      expect(readDraft(made, draftOf(made, {})).problems).toEqual({});
    }
  });

  it('treats a value that the service hides as a secret, whatever the schema says', () => {
    const shown = fieldsOf(SCHEMA, { ordersUrl: { fingerprint: 'abc' }, menu: { fingerprint: 'def' } });
    const hidden = shown.filter(({ id }) => ['ordersUrl', 'menu'].includes(id));
    expect(hidden.map(({ kind, isSecret }) => [kind, isSecret])).toEqual([
      ['url', true],
      ['json', true],
    ]);
  });

  it('edits a large map as JSON', () => {
    const value = Object.fromEntries(Array.from({ length: 50 }, (_, nth) => [`item-${nth}`, 'x']));
    expect(fieldsOf(SCHEMA, { itemMap: { value } }).find(({ id }) => id === 'itemMap')?.kind).toBe('json');
  });
});

describe('typed settings', () => {
  it('are a list if several secrets may be valid and several are written', () => {
    expect(read({ keys: 'one' }).settings).toEqual({ keys: 'one', ids: {} });
    expect(read({ keys: ' one two\nthree ' }).settings).toEqual({ keys: ['one', 'two', 'three'], ids: {} });
    expect(read({ secret: 'one two' }).settings).toEqual({ secret: 'one two', ids: {} });
  });

  it('are sent with the types of the schema, without empty values', () => {
    const written = {
      ordersUrl: ' https://pos.example.com ',
      secret: ' kept as it is ',
      prep: '20',
      isOpen: 'false',
      unsigned: 'true',
      'ids.pickup': 'p',
      itemMap: [
        ['a', 'b'],
        ['', ''],
      ],
      menu: '{"x": {"ref": "1"}}',
    };
    expect(read(written)).toEqual({
      settings: {
        ordersUrl: 'https://pos.example.com',
        secret: ' kept as it is ',
        prep: 20,
        isOpen: false,
        unsigned: true,
        ids: { pickup: 'p' },
        itemMap: { a: 'b' },
        menu: { x: { ref: '1' } },
      },
      removed: [],
      problems: {},
    });
    // A required group is sent empty, so that the service names the inputs that are missing in it.
    expect(read({}).settings).toEqual({ ids: {} });
  });

  it.each([
    ['prep', 'many', /not a number/],
    ['menu', '{"x": }', /not valid JSON/],
    ['itemMap', [['', 'b']], /no left side/],
    [
      'itemMap',
      [
        ['a', 'b'],
        ['a', 'c'],
      ],
      /same left side/,
    ],
  ])('are refused if a typed value cannot be read: %s %j', (id, written, problem) => {
    expect(read({ [id]: written }).problems[`settings.${id}`]).toMatch(problem);
  });

  it('leave settings that nobody typed as they are', () => {
    const base = { account: 17, minutes: { pickup: 5 }, unknown: [1], itemMap: { a: 'b' } };
    expect(read({}, base).settings).toEqual({ ...base, ids: {} });
    expect(read({ 'minutes.pickup': '' }, base).settings).not.toHaveProperty('minutes');
  });
});

describe('a change of a location', () => {
  const base = {
    ...NOTHING_KNOWN,
    integration: 'standard',
    name: 'Nord',
    groups: ['b', 'a'],
    settings: {
      ordersUrl: { value: 'https://old.example.com' },
      secret: { fingerprint: 'abc' },
      ids: { value: { pickup: 'p', delivery: 'd' } },
      itemMap: { value: { a: '1', b: '2' } },
    },
  };
  const known = fieldsOf(SCHEMA, base.settings);
  const edit = editOf(base, known);
  const patch = (about: object, settings: object): object =>
    patchOf({ ...edit, about: { ...edit.about, ...about }, settings: { ...edit.settings, ...settings } }, base, known)
      .patch;

  it('contains only changed settings, and secrets only if they were typed', () => {
    expect(patch({}, {})).toEqual({});
    expect(patch({ name: ' Süd ', groups: 'a\nb' }, {})).toEqual({ name: 'Süd' });
    expect(patch({}, { 'ids.delivery': '', itemMap: [['b', '3']] })).toEqual({
      settings: { ids: { delivery: null }, itemMap: { a: null, b: '3' } },
    });
    expect(patch({}, { secret: 'new' })).toEqual({ settings: { secret: 'new' } });
    expect(patch({}, { secret: null })).toEqual({ settings: { secret: null } });
  });

  it('begins with a contact to fill in if a link asks for its telephone number', () => {
    const first = editOf(base, known, 'contact-1-phone');
    expect(first.about.contacts).toEqual([NO_CONTACT]);
    expect(patchOf(first, base, known).patch).toEqual({});
    const stored = { ...base, contacts: [{ email: 'ada@example.com' }] };
    expect(editOf(stored, known, 'contact-1-phone').about.contacts).toHaveLength(1);
  });

  it('contains all settings of the new POS if the POS changes', () => {
    const other = fieldsOf({ properties: { key: { ...TEXT, writeOnly: true } } });
    const to = { ...edit, integration: 'other', settings: { key: 'k' } };
    expect(patchOf(to, base, other).patch).toEqual({ integration: 'other', settings: { key: 'k' } });
  });

  it('keeps the typed settings, and takes over what somebody else has stored since the form was opened', () => {
    const typed = { ...edit, about: { ...edit.about, name: 'Mine' }, settings: { ...edit.settings, secret: 'typed' } };
    const theirs = {
      ...base,
      name: 'Theirs',
      country: 'FR',
      settings: { ...base.settings, ordersUrl: { value: 'https://new.example.com' } },
    };
    const moved = moveEdit(typed, edit, editOf(theirs, known));
    expect(moved.about).toMatchObject({ name: 'Mine', country: 'FR' });
    expect(moved.settings).toMatchObject({ ordersUrl: 'https://new.example.com', secret: 'typed' });
    expect(patchOf(moved, theirs, known).patch).toEqual({ name: 'Mine', settings: { secret: 'typed' } });
  });

  it('is sent as a merge patch', () => {
    expect(mergePatchOf({ a: 1, b: { c: 2, d: 3 } }, { b: { c: 2, d: 4 }, e: [1] })).toEqual({
      a: null,
      b: { d: 4 },
      e: [1],
    });
    expect(mergePatchOf({ a: 1 }, { a: 1 })).toBeUndefined();
  });
});

describe('an error in the form', () => {
  const issue = (path: string, says: string) => ({ path, received: 'string' as const, says });

  it('is shown next to its input, or at the top if the error belongs to no input', () => {
    const about = { ...NO_ABOUT, contacts: [NO_CONTACT] };
    const ids = [...aboutIds(about), ...idsOf(fields)];
    expect(
      problemsOf(
        [
          issue('settings.ordersUrl', 'is not a URL'),
          { path: 'settings.ids.pickup', received: 'missing', expected: 'string' },
          issue('settings.itemMap.a', 'is empty'),
          issue('groups.0', 'is empty'),
          issue('contacts.0.phone', 'is not a number'),
          issue('contacts.0', 'needs an email or a phone'),
          issue('settings.', 'has no field other'),
        ],
        ids,
      ),
    ).toEqual({
      byField: {
        'settings.ordersUrl': 'Orders URL is not a URL.',
        'settings.ids.pickup': 'Pickup is missing.',
        'settings.itemMap': 'a is empty.',
        groups: 'Group 1 is empty.',
        'contacts.0.phone': 'Phone is not a number.',
        'contacts.0': 'Contact 1 needs an email or a phone.',
      },
      others: ['settings has no field other.'],
    });
  });

  it('disappears only when its input changes', () => {
    const problems = { name: 'x', 'settings.a': 'y' };
    expect(withoutChanged(problems, { name: '1' }, { name: '2' })).toEqual({ 'settings.a': 'y' });
    const phone = { 'contacts.0.phone': 'z' };
    expect(withoutChanged(phone, { contacts: [] }, { contacts: [NO_CONTACT] })).toEqual({});
    expect(withoutChanged(problems, { a: '1', name: '1' }, { a: '2', name: '1' }, 'settings.')).toEqual({ name: 'x' });
  });
});

it('the label of a setting is its name in words', () => {
  expect(['ordersUrl', 'clientId', 'diningOptionGuids', 'oauthUrl', 'closedMeansCompleted'].map(labelOf)).toEqual([
    'Orders URL',
    'Client ID',
    'Dining option GUIDs',
    'OAuth URL',
    'Closed means completed',
  ]);
});

it('a typed price is converted to minor units of its currency', () => {
  expect([
    minorUnitsOf('12.9', 'EUR'),
    minorUnitsOf(' 12,90 ', 'EUR'),
    minorUnitsOf('500', 'JPY'),
    minorUnitsOf('1.29', 'KWD'),
    minorUnitsOf('', 'EUR'),
    minorUnitsOf('-1', 'EUR'),
  ]).toEqual([1290, 1290, 500, 1290, undefined, undefined]);
});

it('a secret that is generated is one that its POS accepts', () => {
  const names = [...registry.values()].flatMap((provider) => {
    const { shape } = newSettingsOf(provider) as z.ZodObject;
    return fieldsOf(settingsSchema(provider)).flatMap(({ id, generated }) => {
      if (generated === undefined) return [];
      expect((shape[id] as z.ZodType).safeParse(randomSecret(generated)).success, id).toBe(true);
      return [id];
    });
  });
  expect(names).toEqual(expect.arrayContaining(['secret', 'webhookPassword']));
  expect(randomSecret('')).not.toBe(randomSecret(''));
});

it('the wizard asks for each setting that an integration requires, also if another setting may replace it', () => {
  const asked = (integration: string): string[] => {
    const made = fieldsOf(settingsSchema(registry.get(integration) ?? expect.unreachable()));
    return made.flatMap(({ id, isRequired, requiredWithout: other }) =>
      isRequired ? [id] : other === undefined ? [] : [`${id} or ${other}`],
    );
  };
  expect(asked('standard')).toEqual(['ordersUrl', 'secret or unsigned']);
  expect(asked('toast')).toEqual([
    'restaurantGuid',
    'webhookSecret',
    'diningOptionGuids',
    'baseUrl or application',
    'clientId or application',
    'clientSecret or application',
  ]);
});

it('the description of a setting names others as the form labels them', () => {
  const description = 'Instead of accessToken, as HubRise gives it at https://a.example/oneTwo.html. TAKE_OUT stays.';
  const [field] = fieldsOf({ properties: { clientId: { ...TEXT, description } } });
  expect(field?.description).toBe(description.replace('accessToken', '“Access token”'));
});

it('a value that is not shown is called a secret only if it is one', () => {
  expect(hiddenInWords({ fingerprint: 'abc' })).toBe('a value that is not shown (fingerprint abc)');
  const address = { origin: 'https://pos.example.com/…', fingerprint: 'abc' };
  expect(hiddenInWords(address)).toBe('https://pos.example.com/…, the rest is not shown (fingerprint abc)');
});

it('a field of a group that may be left out is not required', () => {
  const group = { type: 'object', required: ['item'], properties: { item: TEXT } };
  const [must, may] = fieldsOf({ ...group, required: ['must'], properties: { must: group, may: group } });
  expect([must, may].map((each) => each?.fields[0]?.isRequired)).toEqual([true, false]);
});

it('a city in place of a time zone is refused with the time zone that it has', () => {
  const errors = ['Berlin', 'new york', 'Nowhere'].map(
    (text) => LocationDetails.shape.timeZone.safeParse(text).error?.issues[0]?.message,
  );
  const like = ['Europe/Berlin', 'America/New_York', 'Europe/Berlin'];
  expect(errors).toEqual(like.map((zone) => `is not an IANA time zone such as ${zone}`));
});

it('empty texts of a location are sent as null', () => {
  const contacts = [
    { ...NO_CONTACT, name: 'Ada' },
    { ...NO_CONTACT, email: ' ' },
  ];
  expect(readAbout({ ...NO_ABOUT, country: 'de', groups: 'b\n\na\nb', contacts })).toEqual({
    ...NOTHING_KNOWN,
    country: 'DE',
    groups: ['a', 'b'],
    contacts: [{ name: 'Ada' }],
  });
});

it('an unchanged contact is sent as it was read, and a new contact gets notices in English', () => {
  const contacts = [
    {
      name: 'Kitchen',
      email: 'kitchen@nord.example',
      via: 'email' as const,
      afterMinutes: 0,
      language: 'de' as const,
      quiet: { from: '22:00', to: '08:00' },
      about: ['late' as const],
    },
    { phone: '+4930123456' },
    { email: 'bar@nord.example', via: 'email' as const, language: 'en' as const },
  ];
  expect(readAbout(aboutOf({ ...NOTHING_KNOWN, contacts })).contacts).toEqual(contacts);
  expect(NO_CONTACT).toMatchObject({ language: 'en', about: [...NOTICE_REASONS] });
});
