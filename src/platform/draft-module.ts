/** `expediter platform init`: drafts an order module from a platform's schema. */
import { readFile } from 'node:fs/promises';
import { buildClientSchema, buildSchema, type GraphQLSchema, type IntrospectionQuery } from 'graphql';
import { chooseFields, handoverOf, settleTax, type Chosen } from './choose-fields.ts';
import { decideByValues, type Decided } from './decide-by-values.ts';
import { findOrderFields, wordsOf, type Found, type OrderField } from './order-in-schema.ts';
import { at, documentOf, entriesAt, plant, printType, type Tree } from './write-query.ts';

/** A schema for a platform that does not publish its own. */
const SKELETON = `
  scalar Decimal
  type Query { order(id: ID!): Order }
  type Order {
    id: ID!  type: OrderType!  createdAt: String!  requestedAt: String  cancelledAt: String  notes: String
    restaurant: Restaurant!  customer: Customer!  address: Address  items: [Item!]!
    subtotal: Decimal!  tax: Decimal!  tip: Decimal  deliveryFee: Decimal  total: Decimal!  currency: String!
  }
  enum OrderType { DELIVERY PICKUP DINE_IN }
  type Restaurant { id: ID! }
  type Customer { id: ID!  name: String!  email: String  phone: String }
  type Address { street: String!  houseNumber: String  postalCode: String  city: String  country: String }
  type Item { id: ID!  name: String!  quantity: Int!  price: Decimal!  notes: String  modifiers: [Modifier!]! }
  type Modifier { id: ID!  name: String!  quantity: Int!  price: Decimal! }`;

/**
 * Reads a schema from a file, or uses the skeleton's.
 * @throws Error that says what is wrong with the file
 */
export async function readSchema(file: string | undefined): Promise<GraphQLSchema> {
  if (file === undefined) return buildSchema(SKELETON);
  const text = await readFile(file, 'utf8');
  try {
    if (!/^\s*\{/.test(text)) return buildSchema(text, { assumeValid: true });
    const json = JSON.parse(text.trim()) as { data?: IntrospectionQuery } & IntrospectionQuery;
    return buildClientSchema(json.data ?? json, { assumeValid: true });
  } catch (error) {
    const { message, locations } = error as Error & { locations?: { line: number }[] };
    const where = [file, ...(locations ?? []).map(({ line }) => line)].join(':');
    throw new Error(`${where} is no schema: ${message}`, { cause: error });
  }
}

/**
 * An order that was fetched by `sampleQuery`. `refused` are paths from it that the token may not read. `hidesToken`: a
 * wrong token is answered as if it might read other orders.
 */
export type Sample = { field: OrderField; order: unknown; refused: ReadonlySet<string>; hidesToken?: boolean };

const errorCodeFor = ({ steps }: OrderField): string => `
/** A wrong token is answered by FORBIDDEN for the order itself. */
export const errorCode = ({ path = [], extensions }: PlatformError) =>
  path.length <= ${steps.length} && extensions?.['code'] === 'FORBIDDEN' ? 'UNAUTHENTICATED' : undefined;
`;

const NONE: ReadonlySet<string> = new Set();
const WIDTH = 120;

/** @throws Error if no query field gives one order by its id */
export function orderFieldsOf(schema: GraphQLSchema): [OrderField, ...OrderField[]] {
  const [first, ...others] = findOrderFields(schema);
  if (first !== undefined) return [first, ...others];
  throw new Error(
    'No field of the query type takes an id and returns an order with items. Names are read as English words. If the ' +
      "platform has another API, for the shop's own systems, use the schema of that one. If it has none, write the " +
      'module by --without-schema.',
  );
}

/** Writes a query for an order with all fields that may be chosen. */
export function sampleQuery(schema: GraphQLSchema, field: OrderField, refused: ReadonlySet<string>): string {
  const tree: Tree = new Map();
  // Fields with one name in several fragments may be in conflict, so only the best one is asked for.
  const isPlain = ({ steps }: Found): boolean => steps.every(({ on }) => on === '');
  for (const { best, close } of chooseFields(schema, field, refused).fields.values())
    for (const found of [best, ...close.filter(isPlain)]) plant(tree, found.steps, found);
  return documentOf(field, tree);
}

/**
 * The mapper's lines. A line after `?name` is there only if a field was chosen for it, after `-name` only if not. In
 * braces are texts, `$` amounts, `@` times and `#` counts, with `!` if required. After `//` are the TODO, and after `%`
 * that of a field for which nothing was chosen.
 */
const LINES = `
    serviceOrderId: {serviceOrderId!},
    locationId: {locationId!}, // the id in: expediter location put --location
    member: {
      id: {member.id!}, // for a guest, an id of their own for each order
      name: {member.name!},
      email: {member.email}, // % if you have it
      phone: {member.phone}, // % if you have it
    },
    fulfillment: {
      type: {type!}, // % 'delivery' or 'pickup' [type]
-street      destination: null, // required for a delivery [address]
?street      destination: address && {
?street        line1: {street!},
?street        line2: {line2}, // % if you have it
?street        postalCode: {postalCode}, // % if you have it
?street        city: {city}, // % if you have it
?region        region: {region},
?country        country: {country},
?street      },
      requestedAt: {@requestedAt}, // % if members choose a time [order]
    },
    items: {item.list}.map((item, nth) => ({
      serviceItemId: {serviceItemId!}, // is this the id in the POS's menu?
      name: {name!},
      quantity: {#quantity!},
      unitPrice: {$unitPrice!},
      notes: {item.notes}, // % if you have them [item]
?ageRestricted      ageRestricted: {ageRestricted},
-extra.name      modifiers: [], // if there are any [extra]
?extra.name      modifiers: {extra.list}.map((extra) => ({
?extra.name        serviceModifierId: {serviceModifierId!}, // is this the id in the POS's menu?
?extra.name        name: {extra.name!},
?extra.name        quantity: {#extra.quantity!},
?extra.name        unitPrice: {$extra.unitPrice!},
?extra.name      })),
    })),
    money: {
      subtotal: {$subtotal!}, // % all items, before discounts
-discount.amount      discount: {$discount}, // % if there are discounts [discount]
      tax: {$tax}, // % 0 if there is none
      tip: {$tip}, // % if there are tips
      fee: {$fee}, // [fee] % if there are fees
      total: {$total!}, // % what the member has paid
      currency,
?pricesIncludeTax      pricesIncludeTax: {pricesIncludeTax},
    },
?discount.amount    discounts: {discount.list}.map((discount) => ({ // without discounts of the fee
?discount.amount      name: {discount.name},
?discount.amount      amount: Math.abs({$discount.amount!}),
?discount.amount    })),
    notes: {notes}, // % if you have them [order]
    placedAt: {@placedAt!},
    cancelledAt: {@cancelledAt}, // % when, if it is cancelled, or any time then. null: it is not`;

const pathOf = ({ steps, skip }: Pick<Found, 'steps' | 'skip'>): string =>
  steps
    .slice(skip)
    .flatMap(({ name }) => (/^(edges|nodes?)$/.test(name) ? [] : [name]))
    .join('.');
const listed = (found: readonly Found[]): string => found.map(pathOf).join(' or ');
const lacks = ({ steps, skip }: Found): boolean => steps.slice(skip).some((step) => step.lacks);
const isNumber = ({ kind, type }: Found): boolean => kind === 'number' || /^(Int|Float)$/.test(type.name);

/** Makes the functions that write expressions. What they read is planted in the query's tree. */
function expressions({ fields }: Chosen, tree: Tree) {
  const read = (found: Found): string => {
    plant(tree, found.steps, found);
    return at(found.root, found.steps.slice(found.skip));
  };
  const text = (found: Found, isRequired: boolean): string => {
    if (found.kind === 'flag') return read(found);
    const join = found.kind === 'texts' ? `${lacks(found) ? '?' : ''}.join(', ')` : '';
    if (isNumber(found)) return `String(${read(found)}${lacks(found) ? " ?? ''" : ''})`;
    return `${read(found)}${join}${isRequired && lacks(found) ? " ?? ''" : ''}`;
  };
  const time = (found: Found, isRequired: boolean, name: string): string => {
    if (!isNumber(found)) return text(found, isRequired);
    const since = `timeSinceEpoch(${read(found)}, '${found.unit ?? 's'}', '${name}')`;
    return lacks(found) && !isRequired ? `${read(found)} ? ${since} : null` : since;
  };
  /** A required amount that is missing throws, because it would otherwise be free. */
  const amount = (found: Found, isRequired: boolean, name: string): string => {
    const reader = found.unit === 'minor' ? 'minorUnits' : found.unit === 'decimal' ? 'decimal' : 'amount';
    const place = { item: 'items.${nth}.', extra: 'items.${nth}.modifiers.' }[found.root] ?? '';
    const field = `${place}${name.replace(/^\w+\./, '')}`;
    const quote = place === '' ? "'" : '`';
    return `${reader}(${read(found)}${lacks(found) && !isRequired ? ' ?? 0' : ''}, ${quote}${field}${quote})`;
  };
  const count = (found: Found): string =>
    lacks(found) || found.type.name !== 'Int' ? `Number(${read(found)})` : read(found);
  const write = (sign: string, name: string, isRequired: boolean): string | undefined => {
    const best = fields.get(name)?.best;
    if (best === undefined) return undefined;
    const by = sign === '$' ? amount : sign === '@' ? time : sign === '#' ? count : text;
    return by(best, isRequired, name);
  };
  return { read, write };
}
type Write = ReturnType<typeof expressions>['write'];

/** Fields whose names may mean something else, unless they match. */
const DOUBTS: readonly [name: string, sure: RegExp, todo: string][] = [
  ['country', /code|iso/, 'a code such as DE?'],
  ['requestedAt', /request|want|desir|schedul|prefer|promis|slot/, 'does the member choose it?'],
  ['notes', /^((kitchen|customer|special) )?(note|remark|comment|instruction|request)s?$/, 'is it for the kitchen?'],
  ['discount.amount', /^(?!value)/, 'is it a percentage?'],
];

/** The expressions of what is more than one field, and further TODOs, by the name in `LINES`. */
function specials(
  chosen: Chosen,
  { read, write }: ReturnType<typeof expressions>,
  about: Decided & { isGross: boolean },
) {
  const { fields, lists, hints } = chosen;
  const of = (name: string): Found | undefined => fields.get(name)?.best;
  const all = (...names: string[]): string => names.flatMap((name) => write('', name, false) ?? []).join(', ');
  const values = new Map<string, string>();
  const todos = new Map<string, string>();
  for (const [name, list] of Object.entries(lists))
    if (list) values.set(`${name}.list`, entriesAt(list.root, list.steps.slice(list.skip)));
  if (lists.item?.steps.some(({ args }) => args !== ''))
    todos.set('item.list', 'may an order have more than 100 lines?');
  if (of('member.first') && !/^((full|display) ?)?name$/.test(of('member.name')?.words ?? ''))
    values.set('member.name', `joinName(${all('member.first', 'member.last')})`);
  const to = of('line1') ?? of('street');
  const line = write('', of('line1') ? 'line1' : 'street', true);
  if (to) values.set('address', at('order', to.steps.slice(0, to.skip)));
  const isJoined = !of('line1') && of('houseNumber');
  if (line !== undefined) values.set('street', isJoined ? `joinStreet(${all('street', 'houseNumber')})` : line);
  for (const [name, sure, todo] of DOUBTS) {
    const best = of(name);
    const said = [best?.words, ...(best?.above ?? [])].join(' ');
    if (best && best.kind !== 'enum' && !sure.test(said)) todos.set(name, todo);
  }
  const age = of('ageRestricted');
  if (age) values.set('ageRestricted', age.kind === 'flag' ? `${read(age)} ?? false` : `Number(${read(age)} ?? 0) > 0`);
  const { isReduced, isGross, includesTax } = about;
  const isDiscounted = lists.discount !== undefined || of('discount') !== undefined;
  // Platforms write a discount with a minus, or without.
  const discount = of('discount') && `Math.abs(${write('$', 'discount', false)})`;
  if (discount) values.set('discount', discount);
  const reduction = lists.discount ? 'reduction' : discount;
  if (isReduced === true && of('subtotal')) {
    values.set('subtotal', `${write('$', 'subtotal', true)} + ${reduction}`);
    todos.set('subtotal', 'without discounts of the fee');
  }
  if (isReduced === undefined && isDiscounted && !/before/.test(of('subtotal')?.words ?? 'before'))
    todos.set('subtotal', 'before discounts?');
  const [total, net] = [of('total'), of('totalNet')];
  if (!of('tax') && total && net) {
    values.set('tax', `${write('$', 'total', true)} - ${write('$', 'totalNet', true)}`);
    const part = `(Number(${read(total)}) - Number(${read(net)}))${total.unit === 'decimal' ? '' : ' / 100'}`;
    todos.set('tax', `fractions of a yen? roundTogether([${part}], currency).sum`);
  }
  if (isGross || (includesTax !== undefined && !of('pricesIncludeTax'))) {
    const isIn = isGross || includesTax === true;
    values.set('pricesIncludeTax', String(isIn));
    const only = `${isIn} only if ${isIn ? 'all' : 'none of'} your shops' prices include the tax`;
    if (hints.net.length > 0 && !of('pricesIncludeTax'))
      todos.set(
        'pricesIncludeTax',
        `${only}; otherwise ${hints.net.map(pathOf).join(', ')} ${isIn ? 'without' : 'with'} it`,
      );
  }
  const count = of('quantity');
  // A missing quantity is no cancelled line.
  if (lists.item && count && !lacks(count))
    values.set('item.list', `${values.get('item.list')}.filter((item) => ${write('#', 'quantity', true)} !== 0)`);
  else todos.set('quantity', 'leave out cancelled lines of 0');
  const type = of('type');
  if (type) values.set('type', `mapEnum(${read(type)}, TYPES, 'type')`);
  const state = of('cancelled');
  if (state && !of('cancelledAt')) {
    const words = state.values.filter((value) => /cancel/i.test(value));
    const [cancelled, ...more] = words.toSorted((a, b) => a.length - b.length);
    values.set(
      'cancelledAt',
      `${read(state)} === '${cancelled ?? 'Cancelled'}' ? ${write('@', 'placedAt', true)} : null`,
    );
    const when = [...more.map((value) => `or ${value}?`), 'the time of the cancel, if you have it'].join(' ');
    todos.set('cancelledAt', cancelled ? when : 'is this the word for cancelled?');
  }
  for (const name of ['placedAt', 'requestedAt', 'cancelledAt']) {
    const time = of(name);
    const how = time && isNumber(time) ? 's or ms?' : `no offset? timeInZone(…, 'Europe/Berlin')`;
    if (time && !time.unit) todos.set(name, `${todos.get(name) ?? ''} ${how}`.trim());
  }
  const foreign = hints.foreign[0];
  if (foreign) todos.set('currency', `or ${pathOf(foreign)}, and its amounts?`);
  return { values, todos };
}

/** Writes the lines of a template. */
function render(
  template: string,
  chosen: Chosen,
  { values, todos }: ReturnType<typeof specials>,
  write: Write,
): string[] {
  const { fields, hints } = chosen;
  const isKnown = (name: string): boolean => values.has(name) || fields.has(name);
  const hinted = (todo: string): string =>
    todo
      .replaceAll(/ ?\[(\w+)\]/g, (_, name: 'order') => (hints[name].length > 0 ? `: ${listed(hints[name])}?` : ''))
      .replace(/^: /, 'and ');
  return template
    .slice(1)
    .split('\n')
    .flatMap((line) => {
      const [, mark, need = '', rest = line] = /^([?-])(\S+)( .*)$/.exec(line) ?? [];
      const [code = '', comment = ''] = rest.split(' // ');
      const [always = '', absent = ''] = comment.split('% ');
      if (mark !== undefined && isKnown(need) !== (mark === '?')) return [];
      const [, sign = '', name = '', required] = /\{([$@#]?)([\w.]+)(!?)\}/.exec(code) ?? [];
      const value = values.get(name) ?? write(sign, name, required === '!');
      const none = required === '!' || name === 'tax' ? 'undefined' : sign === '$' ? '0' : 'null';
      const close = values.has(name) && !/street|subtotal|discount$/.test(name) ? [] : (fields.get(name)?.close ?? []);
      const missing = name !== '' && value === undefined ? absent || (always ? '' : required && 'required') : '';
      const all = [
        hinted(always.trim()),
        hinted(missing || ''),
        close.length > 0 ? `or ${listed(close)}?` : '',
        todos.get(name) ?? '',
      ];
      const said = all.filter(Boolean).join('; ').replaceAll('?; ', '? ');
      return withTodo(code.replace(/\{[^{}]+\}/, value ?? none), said);
    });
}

/** A TODO that is too long for its line is above it. */
function withTodo(code: string, todo: string): string[] {
  if (todo === '') return [code];
  const line = `${code}${code.trim() && ' '}// TODO: ${todo}`;
  if (line.length <= WIDTH) return [line];
  const indent = /^ */.exec(code)?.[0] ?? '';
  return [`${indent}// TODO: ${todo}`.slice(0, 140), `${code}${code.includes('undefined') ? ' // TODO' : ''}`];
}

/** The table of the values that say how food is handed over, and the lines that skip orders that are not for us. */
function handover({ fields }: Chosen, read: (found: Found) => string): { table: string; skips: string } {
  const type = fields.get('type')?.best;
  if (type === undefined) return { table: '', skips: '' };
  const rows = type.values.flatMap((value) =>
    /delivery|pickup/.test(handoverOf(value) ?? '') ? [`${value}: '${handoverOf(value)}'`] : [],
  );
  const open = type.values.filter((value) => handoverOf(value) === undefined);
  const some = `${open.slice(0, 6).join(', ')}${open.length > 6 ? ' and others' : ''}`;
  const todo =
    open.length > 0 ? `'delivery', 'pickup' or skip: ${some}` : rows.length > 0 ? '' : `each value of ${pathOf(type)}`;
  const tables = type.values.filter((value) => handoverOf(value) === 'table');
  return {
    table: `${withTodo(`const TYPES: Record<string, 'delivery' | 'pickup'> = { ${rows.join(rows.length > 4 ? ',\n  ' : ', ')} };`, todo).join('\n')}\n\n`,
    skips: tables
      .map(
        (value) =>
          `  if (${read(type)} === '${value}') return skip('${wordsOf(value).replaceAll(' ', '_')}'); // TODO: not for us?\n`,
      )
      .join(''),
  };
}

const HELPERS = ['joinName', 'joinStreet', 'mapEnum', 'minorUnits', 'skip', 'timeSinceEpoch', 'toMinorUnits'];
const TAKES = '(value: string | number | null | undefined, field: string): number =>';
/** The mapper's lines before those of `LINES`. */
const HEAD = `
?street  const address = {address};
  const currency: string = {currency!}; // % yours, such as 'EUR'
?decimal  const decimal = ${TAKES} toMinorUnits(value, currency, field);
?minorUnits   // if the platform writes 990 JPY as 99000, all amounts by: fromHundredths(value, currency, field)
?amount   // 12.90: toMinorUnits(value, currency, field). 1290: minorUnits(value, field), or fromHundredths
?amount  const amount = ${TAKES} undefined; // which?
?reduction  const reduction = {discount.list}.reduce(
?reduction    (sum, discount) => sum + Math.abs({$discount.amount!}),
?reduction    0,
?reduction  );`;

/** The most values outside lists that are queried, and fields to leave out if there are more, the first one first. */
const VALUES_MAX = 25;
const OPTIONAL = ['region', 'pricesIncludeTax', 'line2', 'member.email', 'requestedAt'];
const countValues = (tree: Tree): number =>
  [...tree.values()].reduce(
    (sum, { step, leaf, below }) => sum + (leaf ? 1 : step.lists > 0 ? 0 : countValues(below)),
    0,
  );

function draftBody(chosen: Chosen, decided: Decided) {
  const tree: Tree = new Map();
  const by = expressions(chosen, tree);
  const special = specials(chosen, by, { ...decided, isGross: settleTax(chosen) });
  const lines = render(LINES, chosen, special, by.write).join('\n');
  const { table, skips } = handover(chosen, by.read);
  for (const name of ['decimal', 'minorUnits', 'amount', 'reduction'])
    if (new RegExp(`\\b${name}\\(|\\+ ${name}\\b`).test(lines)) special.values.set(name, '');
  const body = `${skips}${render(HEAD, chosen, special, by.write).join('\n')}\n  return {\n${lines}\n  };\n}\n`;
  return { tree, table, skips, body };
}

/**
 * Drafts a module. What is not certain is a TODO. A required field that nothing fits is undefined: its type is wrong, and
 * `platform check` reports it as missing.
 * @param about.header the header that takes the token; by default it is a bearer token
 * @param about.sample an order whose values decide what names leave open
 * @throws Error if no query field gives one order by its id
 */
export function draftModule(
  schema: GraphQLSchema,
  { header, sample }: { header?: string | undefined; sample?: Sample | undefined } = {},
) {
  const all = orderFieldsOf(schema);
  const field = sample?.field ?? all[0];
  const chosen = chooseFields(schema, field, sample?.refused ?? NONE);
  const decided = sample ? decideByValues(chosen, sample.order) : {};
  let { tree, table, skips, body } = draftBody(chosen, decided);
  for (const name of OPTIONAL) {
    if (countValues(tree) <= VALUES_MAX) break;
    chosen.fields.delete(name);
    ({ tree, table, skips, body } = draftBody(chosen, decided));
  }
  const type = field.steps.reduceRight((inner, { name }) => `{ ${name}: ${inner} | null }`, 'Order');
  const used = HELPERS.filter((name) => new RegExp(`\\b${name}\\(`).test(body.replaceAll(/ \/\/ .*/g, '')));
  const hidesToken = sample?.hidesToken === true;
  const types = ['type OrderInput', hidesToken && 'type PlatformError', skips && 'type Skipped'].filter(Boolean);
  const imports = [...used, ...types].join(', ');
  const text = `/** Turns orders of our platform into Expediter's: ORDER_MODULE names this file. Check it: expediter platform check */
import { ${imports} } from 'expediter-platform';

export const query = \`${documentOf(field, tree)}\`;
${takesNumber(field) ? '\nexport const variables = (orderId: string) => ({ id: Number(orderId) });\n' : ''}${header === undefined ? '' : `\nexport const headers = (token: string | undefined) => ({ '${header}': token ?? '' });\n`}${hidesToken ? errorCodeFor(field) : ''}
${table}type Order = ${printType(tree, '')};

export function toCanonicalOrder(data: ${type}): OrderInput${skips && ' | Skipped'} | null {
  const order = data.${field.steps.map(({ name }) => name).join('?.')};
  if (!order) return null;
${body}`;
  const nameOf = ({ steps }: OrderField): string => steps.map(({ name }) => name).join('.');
  const others = all.map(nameOf).filter((name) => name !== nameOf(field));
  const open = text.split('\n').flatMap((line, nth) => {
    const todo = /\/\/ TODO: (.*)/.exec(line)?.[1];
    return todo === undefined ? [] : [{ line: nth + 1, todo }];
  });
  const found = ['type', 'requestedAt', 'unitPrice', 'subtotal', 'tax', 'fee', 'total', 'placedAt'].map((name) => {
    const best = chosen.fields.get(name)?.best;
    return { field: name, from: best ? [best.root, pathOf(best)].join('.') : 'see the draft' };
  });
  return { text, field: nameOf(field), others, found, open, addsUp: decided.addsUp };
}

export const takesNumber = ({ argType }: OrderField): boolean => argType.startsWith('Int');
