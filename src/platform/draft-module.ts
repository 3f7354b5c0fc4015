/** `expediter platform init`: drafts an order module from a platform's schema. */
import { readFile } from 'node:fs/promises';
import {
  buildClientSchema,
  buildSchema,
  getNamedType,
  getNullableType,
  isEnumType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  isUnionType,
  type GraphQLField,
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  type GraphQLSchema,
  type IntrospectionQuery,
} from 'graphql';

/** A schema for a platform that does not publish its own. */
const SKELETON = `
  type Query { order(id: ID!): Order }
  type Order {
    id: ID!  type: OrderType!  createdAt: String!  requestedAt: String  cancelledAt: String  notes: String
    restaurant: Restaurant!  customer: Customer!  address: Address  items: [Item!]!
    subtotal: String!  tax: String!  tip: String  deliveryFee: String  total: String!  currency: String!
  }
  enum OrderType { DELIVERY PICKUP DINE_IN }
  type Restaurant { id: ID! }
  type Customer { id: ID!  name: String!  email: String  phone: String }
  type Address { street: String!  houseNumber: String  postalCode: String  city: String  country: String  instructions: String }
  type Item { id: ID!  name: String!  quantity: Int!  price: String!  notes: String  modifiers: [Modifier!]! }
  type Modifier { id: ID!  name: String!  quantity: Int!  price: String! }`;

/** The most types on a path from the order, not counting those of `edges` and `node`. */
const DEPTH = 5;

/**
 * Reads a schema from a file, or uses the skeleton's.
 * @throws Error that says what is wrong with the file
 */
export async function readSchema(file: string | undefined): Promise<GraphQLSchema> {
  if (file === undefined) return buildSchema(SKELETON);
  const text = await readFile(file, 'utf8');
  if (!/^\s*\{/.test(text)) return buildSchema(text, { assumeValid: true });
  const json = JSON.parse(text) as { data?: IntrospectionQuery } & IntrospectionQuery;
  return buildClientSchema(json.data ?? json, { assumeValid: true });
}

type Parent = GraphQLObjectType | GraphQLInterfaceType;
type Field = GraphQLField<unknown, unknown>;
const isParent = (type: unknown): type is Parent => isObjectType(type) || isInterfaceType(type);
const isPlain = ({ args, deprecationReason }: Field): boolean =>
  typeof deprecationReason !== 'string' &&
  !args.some((arg) => isNonNullType(arg.type) && arg.defaultValue === undefined);

/** A queried field. */
type Node = {
  name: string;
  /** How TypeScript reads it, from the variable of the order or of its list's entry: `order.customer?.name`. */
  at: string;
  /** The name of its scalar or enum. Empty for an object. */
  scalar: string;
  values: readonly string[];
  isList: boolean;
  isNullable: boolean;
  /** True if it, or an object above it, is nullable. */
  mayLack: boolean;
  children: Node[];
  args: string;
};

/** A query field that may give one order by its id, with the path of fields above it. */
type Candidate = { path: Field[]; arg: string; argType: string; type: Parent; score: number };

const ORDER = /order|purchase|checkout|sale|basket/i;

function findCandidates(schema: GraphQLSchema): Candidate[] {
  const found: Candidate[] = [];
  const look = (parent: Parent, above: Field[]): void => {
    for (const field of Object.values(parent.getFields())) {
      const type = getNamedType(field.type);
      if (!isParent(type) || typeof field.deprecationReason === 'string') continue;
      const needed = field.args.filter((arg) => isNonNullType(arg.type) && arg.defaultValue === undefined);
      const args = needed.length > 0 ? needed : field.args;
      const arg = args.find((each) => /^(id|code|number|uuid|key|ref\w*|\w*(Id|Code|Number|Uuid))$/.test(each.name));
      if (arg !== undefined && needed.length <= 1 && !isListType(getNullableType(field.type))) {
        const hasItems = Object.values(type.getFields()).some((each) => ITEMS.test(each.name));
        const isExact = /^(get|fetch|find)?_?(order|purchase)(By\w+)?$/i.test(field.name);
        const score =
          Number(isExact) * 3 +
          Number(ORDER.test(field.name)) * 2 +
          Number(ORDER.test(type.name)) * 2 +
          Number(hasItems) * 3 -
          above.length;
        found.push({ path: [...above, field], arg: arg.name, argType: String(arg.type), type, score });
      }
      if (above.length === 0 && needed.length === 0 && !isListType(getNullableType(field.type))) look(type, [field]);
    }
  };
  const query = schema.getQueryType();
  if (query) look(query, []);
  return found.filter(({ score }) => score >= 3).sort((a, b) => b.score - a.score);
}

const ITEMS = /^(order|line|basket|cart)?_?(items|lines|positions|products|entries|articles|dishes|lineitems)$/i;
const EXTRAS = /modifier|extra|option|topping|addon|choice|side|customi[sz]ation/i;
const DISCOUNTS = /discount|voucher|coupon|promotion|rebate/i;
const WRAPPERS = new Set(['edges', 'node', 'nodes']);

/** Where `select` is. It adds the lists that it leaves out to `omitted`. */
type Within = { types: readonly string[]; entry: string; omitted: string[] };

/** Chooses the fields to query: all leaves, and objects to a depth, but no other lists than items and their extras. */
function select(type: Parent, at: string, lacks: boolean, within: Within): Node[] {
  const nodes = Object.values(type.getFields())
    .filter(isPlain)
    .flatMap((field): Node[] => {
      const { name } = field;
      const named = getNamedType(field.type);
      const isList = isListType(getNullableType(field.type));
      const isNullable = !isNonNullType(field.type);
      const path = `${at}${lacks ? '?.' : '.'}${name}`;
      const own = { name, at: path, isList, isNullable, mayLack: lacks || isNullable };
      const node = { ...own, args: '', values: [], children: [] };
      if (!isParent(named)) {
        const values = isEnumType(named) ? named.getValues().map((each) => each.name) : [];
        if (isList) within.omitted.push(path);
        return isList || isUnionType(named) ? [] : [{ ...node, scalar: named.name, values }];
      }
      const isWanted = !isList || WRAPPERS.has(name) || ITEMS.test(name) || EXTRAS.test(name) || DISCOUNTS.test(name);
      const types = WRAPPERS.has(name) ? within.types : [...within.types, named.name];
      const isAgain = within.types.includes(named.name);
      if (!isWanted || isAgain || types.length > DEPTH || name === 'pageInfo') {
        if (isList && (!isAgain || EXTRAS.test(name))) within.omitted.push(path);
        return [];
      }
      const entry = EXTRAS.test(name) ? 'extra' : DISCOUNTS.test(name) ? 'discount' : within.entry;
      const below = { ...within, types, entry };
      const children = isList ? select(named, entry, false, below) : select(named, path, node.mayLack, below);
      const args = field.args.some((arg) => arg.name === 'first') ? '(first: 100)' : '';
      return children.length === 0 ? [] : [{ ...node, scalar: '', children, args }];
    });
  return [...nodes.filter(isLeaf), ...nodes.filter((each) => !isLeaf(each))];
}

const isLeaf = ({ scalar }: Node): boolean => scalar !== '';

/** The TypeScript type of a leaf's value, without null. */
function kindOf({ scalar, values }: Node): string {
  if (values.length > 0) return values.map((value) => `'${value}'`).join(' | ');
  if (scalar === 'Boolean') return 'boolean';
  const known = new Map(Object.entries({ ID: 'string', String: 'string', Int: 'number', Float: 'number' }));
  return known.get(scalar) ?? (/date|time/i.test(scalar) ? 'string' : 'string | number');
}

function queryOf(nodes: readonly Node[], indent: string): string {
  const leaves = nodes.filter(isLeaf).map(({ name }) => name);
  const objects = nodes.filter((each) => !isLeaf(each));
  const below = objects.map(
    (each) => `${each.name}${each.args} {\n${queryOf(each.children, `${indent}  `)}\n${indent}}`,
  );
  return [...(leaves.length > 0 ? [leaves.join(' ')] : []), ...below].map((line) => `${indent}${line}`).join('\n');
}

function typeOf(nodes: readonly Node[], indent: string): string {
  const fields = nodes.map((each) => {
    const type = isLeaf(each) ? kindOf(each) : `${typeOf(each.children, `${indent}  `)}${each.isList ? '[]' : ''}`;
    return `${indent}  ${each.name}: ${type}${each.isNullable ? ' | null' : ''};\n`;
  });
  return `{\n${fields.join('')}${indent}}`;
}

/** Finds the first leaf that a pattern matches. Earlier patterns and earlier lists are preferred. */
const leaf = (patterns: RegExp, ...lists: (readonly Node[] | undefined)[]): Node | undefined =>
  find(patterns, lists, isLeaf);

function find(
  patterns: RegExp,
  lists: readonly (readonly Node[] | undefined)[],
  isApt: (node: Node) => boolean,
): Node | undefined {
  for (const nodes of lists) {
    for (const pattern of patterns.source.split('||').map((source) => new RegExp(`^(${source})$`, 'i'))) {
      const found = nodes?.find((each) => isApt(each) && pattern.test(each.name.replaceAll('_', '')));
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

const object = (pattern: RegExp, nodes: readonly Node[]): Node | undefined =>
  nodes.find((each) => !isLeaf(each) && !each.isList && pattern.test(each.name));

/** All objects below, but not those in lists. Those next to the order are first. */
function objectsIn(nodes: readonly Node[]): Node[] {
  const own = nodes.filter((each) => !isLeaf(each) && !each.isList);
  return [...own, ...own.flatMap(({ children }) => objectsIn(children))];
}

/** Finds a list, maybe as a connection with `edges` or `nodes`. @returns its path and the fields of an entry */
function listIn(pattern: RegExp, nodes: readonly Node[]): { at: string; mayLack: boolean; entry: Node[] } | undefined {
  for (const each of nodes) {
    if (isLeaf(each) || !pattern.test(each.name)) continue;
    if (!each.isList) return listIn(/^(edges|nodes)$/, each.children);
    return { ...each, entry: each.children.find(({ name }) => name === 'node')?.children ?? each.children };
  }
  return undefined;
}

/** A required value that is to be filled in: it compiles, and no order can be placed with it. */
const UNKNOWN = 'undefined as never';

/** Writes a text. A required text that is null becomes blank, which holds the order with the field's name. */
function text(node: Node | undefined, isRequired = false): string {
  if (node === undefined) return isRequired ? UNKNOWN : 'null';
  const isText = !kindOf(node).includes('number') && kindOf(node) !== 'boolean';
  if (isText) return node.mayLack && isRequired ? `${node.at} ?? ''` : node.at;
  return node.mayLack ? `String(${node.at} ?? '')` : `String(${node.at})`;
}

/** Fields of an object that is an amount. */
const AMOUNT = /amount||value||units||gross||\w*cents||\w*minor\w*/;

function amount(found: Node | undefined, path: string, isRequired = true): string {
  const field = path.includes('${') ? `\`${path}\`` : `'${path}'`;
  const node = found && (isLeaf(found) ? found : leaf(AMOUNT, found.children));
  if (node === undefined) return isRequired ? `${UNKNOWN}, // TODO: in minor units` : '0, // TODO: if there is one';
  if (node.scalar === 'Int') {
    const todo = /cents|minor/i.test(node.name)
      ? ''
      : ` // TODO: if it is not in minor units: minor(${node.at}, ${field})`;
    // A missing amount throws, because a missing price would otherwise reach the kitchen.
    return `minorUnits(${node.mayLack && !isRequired ? `${node.at} ?? 0` : node.at}, ${field}),${todo}`;
  }
  return `minor(${node.mayLack && !isRequired ? `${node.at} ?? 0` : node.at}, ${field}),`;
}

function time(node: Node | undefined, isRequired = false): string {
  if (node === undefined) return isRequired ? `${UNKNOWN}, // TODO: RFC 3339; without one, the time now` : 'null,';
  if (kindOf(node) === 'number') {
    const read = `timeSinceEpoch(${node.at}, '${/ms|milli/i.test(node.name) ? 'ms' : 's'}', '${node.name}')`;
    return `${node.mayLack ? `${node.at} ? ${read} : null` : read}, // TODO: s or ms?`;
  }
  return `${text(node, isRequired)}, // TODO: if it has no offset: timeInZone(…, 'Europe/Berlin', '${node.name}')`;
}

/** Drafts the lines of the items or of an item's extras. */
function entries(list: ReturnType<typeof listIn>, variable: 'item' | 'extra', indent: string): string {
  if (list === undefined)
    return variable === 'item'
      ? `${UNKNOWN}, // TODO: the items, which the query lacks`
      : '[], // TODO: if there are any';
  const { entry } = list;
  const product = object(/product|item|article|dish|variant|modifier|option/i, entry)?.children;
  const own = leaf(/sku||plu||product_?id||itemid||menuitemid||modifierid||optionid/, entry);
  const id = own ?? leaf(/sku||plu||code||u?id||number/, product) ?? leaf(/u?id||uuid||code/, entry);
  const price = /unitprice\w*||price\w*||unitamount\w*||priceeach||unitcents||\w*cents||amount||cost/;
  const found = leaf(price, entry, product) ?? object(/price|amount/i, entry) ?? object(/price|amount/i, product ?? []);
  const count = leaf(/quantity||qty||count||howmany||pieces/, entry);
  const age = leaf(/(min|minimum|legal|required)?age||\w*agerestricted||\w*alcohol\w*||\w*adult\w*/, entry, product);
  const isAged = age && (kindOf(age) === 'boolean' ? `${age.at} ?? false` : `Number(${age.at} ?? 0) > 0`);
  const lines = [
    `${variable === 'item' ? 'serviceItemId' : 'serviceModifierId'}: ${text(id, true)}, // TODO: the id in the POS's menu?`,
    `name: ${text(leaf(/name||title||label||\w*name||\w*title/, entry, product), true)},`,
    `quantity: ${count === undefined ? `${UNKNOWN}, // TODO` : kindOf(count) === 'number' && !count.mayLack ? `${count.at},` : `Number(${count.at}),`}`,
    `unitPrice: ${amount(found, variable === 'item' ? 'items.${nth}.unitPrice' : 'items.${nth}.modifiers.unitPrice')}`,
    ...(variable === 'extra'
      ? []
      : [
          `notes: ${text(leaf(/\w*notes?||remarks?||comments?||\w*instructions?/, entry))},`,
          `ageRestricted: ${isAged ?? 'false, // TODO: if you sell alcohol'}${isAged ? ',' : ''}`,
          `modifiers: ${entries(listIn(EXTRAS, entry), 'extra', `${indent}  `)}`,
        ]),
  ];
  const all = list.mayLack ? `(${list.at} ?? [])` : list.at;
  return `${all}.map((${variable === 'item' ? 'item, nth' : variable}) => ({\n${lines.map((line) => `${indent}  ${line}\n`).join('')}${indent}})),`;
}

const DELIVERY = /deliver|courier|ship|drop/i;
const PICKUP = /pick|take|collect|carry|to_?go/i;
const TABLE = /dine|table|eat_?in|on_?site|in_?house/i;

function draftTypes(order: readonly Node[]): { table: string; skips: string; type: string } {
  const nested = objectsIn(order).flatMap(({ children }) => children);
  const isType = ({ values }: Node): boolean => values.some((value) => DELIVERY.test(value) || PICKUP.test(value));
  const named = leaf(
    /type||ordertype||fulfil\w*||handover\w*||\w*method||mode||servicetype||deliverytype/,
    order,
    nested,
  );
  const isOther = ({ name, values }: Node): boolean =>
    /status|state|currency|country|pay|channel|source|lang|locale|priority/i.test(name) &&
    !values.some((value) => /^(delivery|pick_?up)$/i.test(value));
  const enums = [...order, ...nested].filter((each) => each.values.length > 0 && !isOther(each));
  const found = enums.find(isType) ?? named ?? enums.find((each) => order.includes(each));
  if (found === undefined)
    return { table: '', skips: '', type: `${UNKNOWN}, // TODO: such as mapEnum(order.type, { COURIER: 'delivery' })` };
  const skips = found.values.filter((value) => TABLE.test(value));
  const skip = (value: string): string =>
    `  if (${found.at} === '${value}') return skip('${value.toLowerCase()}'); // TODO: not for us?\n`;
  const unknown = `  // TODO: each value of ${found.at}: 'delivery' or 'pickup'\n`;
  const rows = found.values.flatMap((value) => {
    if (skips.includes(value)) return [];
    const ours = DELIVERY.test(value) ? 'delivery' : PICKUP.test(value) ? 'pickup' : undefined;
    return ours === undefined
      ? `  // TODO ${value}: 'delivery', 'pickup', or skip it below\n`
      : `  ${value}: '${ours}',\n`;
  });
  return {
    table: `const TYPES: Record<string, 'delivery' | 'pickup'> = {\n${rows.join('') || unknown}};\n\n`,
    skips: skips.map(skip).join(''),
    type: `mapEnum(${found.at}, TYPES, '${found.name}'),`,
  };
}

function draftPerson(order: readonly Node[]): string[] {
  const person = object(/customer|member|user|guest|buyer|client|contact|diner/i, order)?.children;
  const first = leaf(/first(name)?||given(name)?/, person, order);
  const last = leaf(/last(name)?||family(name)?||surname/, person, order);
  const one =
    leaf(/name||fullname||displayname||\w*(customer|guest|contact)name/, person) ??
    leaf(/(customer|guest|contact|member)name/, order);
  const joined = first && `joinName(${[first, last].flatMap((each) => each?.at ?? []).join(', ')})`;
  const id = leaf(/id||uu?id||number||code/, person) ?? leaf(/(customer|member|user|guest)id/, order);
  return [
    `id: ${text(id, true)}, // TODO: for a guest, an id of their own for each order`,
    `name: ${one === undefined && joined ? joined : text(one, true)},`,
    `email: ${text(leaf(/e?mail\w*/, person, order))},`,
    `phone: ${text(leaf(/\w*phone\w*||mobile\w*||tel/, person, order))},`,
  ];
}

const STREET = /street\w*||road||line1||address||address1||addressline1/;

function draftDestination(order: readonly Node[], indent: string): string {
  const isPlace = /^(delivery|shipping|drop_?off|customer)?_?(address|destination|dropoff)$|shipTo|deliverTo/i;
  const places = objectsIn(order.filter(({ name }) => DELIVERY.test(name) || !LOCATION.test(name)));
  const hasAddress = ({ name, children }: Node): boolean =>
    !/bill|invoice/i.test(name) &&
    leaf(STREET, children) !== undefined &&
    leaf(/city||town||zip\w*||postal\w*||postcode/, children) !== undefined;
  const place = object(isPlace, places) ?? places.find(hasAddress);
  if (place === undefined) return 'null, // TODO: required for a delivery';
  const { children } = place;
  const street = leaf(/street||streetname||road/, children);
  const number = leaf(/housenumber||streetnumber||number||houseno/, children);
  const line = leaf(/line1||address1||addressline1||streetaddress||streetline1/, children);
  const line1 =
    line === undefined && street !== undefined && number !== undefined
      ? `joinStreet(${street.at}, ${number.at})`
      : text(line ?? street ?? leaf(/address||formatted\w*||full\w*/, children), true);
  const part = (field: string, patterns: RegExp): string[] => {
    const found = leaf(patterns, children);
    return found === undefined
      ? []
      : [`${field}: ${/itude/.test(field) && kindOf(found) === 'number' ? found.at : text(found)},`];
  };
  const lines = [
    `line1: ${line1},`,
    ...part('line2', /line2||address2||addressline2||apartment||unit/),
    ...part('postalCode', /zip\w*||postal\w*||postcode/),
    ...part('city', /city||town||locality/),
    ...part('region', /region||state||province\w*/),
    ...part('country', /country||country\w*/),
    ...part('latitude', /lat||latitude/),
    ...part('longitude', /lng||lon||longitude/),
    ...part('instructions', /\w*instructions?||directions?||\w*notes?||\w*comment/),
  ];
  const made = `{\n${lines.map((each) => `${indent}  ${each}\n`).join('')}${indent}}`;
  return place.mayLack ? `${place.at} && ${made.replaceAll(`${place.at}?.`, `${place.at}.`)},` : `${made},`;
}

function draftDiscounts(order: readonly Node[]): string {
  const list = listIn(DISCOUNTS, order);
  if (list === undefined) return '';
  const given = leaf(AMOUNT, list.entry) ?? leaf(/price\w*||discount\w*/, list.entry);
  const name = text(leaf(/name||title||label||code/, list.entry));
  const all = list.mayLack ? `(${list.at} ?? [])` : list.at;
  return `    discounts: ${all}.map((discount) => ({ name: ${name}, amount: ${amount(given, 'discount').replace(/,( \/\/.*)?$/, '')} })),\n`;
}

/** The words before a delivery fee in a name. */
const FEE =
  /deliveryfee||fee||fees||courier\w*||shipping\w*||delivery(cost|price|charge)\w*||servicefee||delivery||\w*fee/;

function draftMoney(order: readonly Node[]): { currency: string; lines: string[] } {
  const objects = objectsIn(order);
  const isSums = ({ name, children }: Node): boolean =>
    /^(totals?|money|pric(e|ing)|payment|amounts?|summary|bill|fees?|charges?)$/i.test(name) ||
    find(/(grand|sub)?total||total(amount|price|cents)||goods/, [children], () => true) !== undefined;
  const both = [order, ...objects.filter(isSums).map(({ children }) => children)];
  const isAmount = (each: Node): boolean => isLeaf(each) && kindOf(each) !== 'boolean' && each.values.length === 0;
  const sum = (patterns: RegExp): Node | undefined =>
    find(patterns, both, isAmount) ?? find(patterns, both, ({ children }) => leaf(AMOUNT, children) !== undefined);
  const total = sum(/total||grandtotal||grand||totalamount||totalprice||totalcents||amount||\w*total\w*/);
  const currencies = objects.filter(({ name }) => /currency/i.test(name)).map(({ children }) => children);
  const nested = objects.map(({ children }) => children);
  const code =
    leaf(/currency\w*/, ...both, total?.children, ...nested) ??
    leaf(/code||iso\w*/, ...currencies) ??
    leaf(/iso||iso4217\w*||\w+currency/, ...both, total?.children);
  const discount = sum(/discount||discounts?(total|amount|cents)||\w*discount/);
  const reduced = discount
    ? `discount: ${amount(discount, 'discount', false)}`
    : '// TODO: discount, or a list of discounts below, if there are any';
  return {
    currency: code === undefined ? `${UNKNOWN}; // TODO: yours, such as 'EUR'` : `${text(code, true)};`,
    lines: [
      `subtotal: ${amount(sum(/subtotal\w*||itemstotal||itemtotal||goods||net\w*/), 'subtotal')}`,
      ...(listIn(DISCOUNTS, order) === undefined ? [reduced] : []),
      `tax: ${amount(sum(/tax(es)?\w*||totaltax||vat\w*/), 'tax', false)}`,
      `tip: ${amount(sum(/tips?\w*||gratuity\w*/), 'tip', false)}`,
      `fee: ${amount(sum(FEE), 'fee', false)}`,
      `total: ${amount(total, 'total')}`,
      'currency,',
    ],
  };
}

const LOCATION = /restaurant|location|store|shop|branch|venue|outlet|kitchen|merchant|vendor|site/i;

function draftLocation(order: readonly Node[]): string {
  const place = object(LOCATION, order);
  const own = leaf(new RegExp(`\\w*(${LOCATION.source})(id|code|number)`), order);
  return text(own ?? leaf(/id||uu?id||code||slug||number||key||ref\w*/, place?.children), true);
}

function draftCancelled(order: readonly Node[], placed: Node | undefined): string {
  const at = leaf(/cancell?ed(at|on|ts|time)?/, order);
  if (at !== undefined && kindOf(at) !== 'boolean') return time(at);
  const status = order.find(({ values }) => values.some((value) => /cancel/i.test(value)));
  const value = status?.values.find((each) => /cancel/i.test(each));
  if (status === undefined || placed === undefined)
    return 'null, // TODO: the time of the cancellation, if the order is cancelled. If you store no time, use any, such as placedAt. null: not cancelled';
  const when = time(placed, true).replace(/, \/\/.*|,$/, '');
  return `${status.at} === '${value}' ? ${when} : null, // TODO: the time of the cancel, if you have it`;
}

function leavesOf(nodes: readonly Node[]): Node[] {
  return nodes.flatMap((node) => (node.children.length > 0 ? leavesOf(node.children) : [node]));
}

const HELPERS = ['joinName', 'joinStreet', 'mapEnum', 'minorUnits', 'skip', 'timeSinceEpoch', 'toMinorUnits'];

/**
 * Drafts a module. Everything that cannot be known is a TODO, or a value that `platform check` reports as missing.
 * @param header the header that takes the token; by default it is a bearer token
 * @throws Error if no query field looks like one order by its id
 */
export function draftModule(schema: GraphQLSchema, header?: string) {
  const [found, ...others] = findCandidates(schema);
  if (found === undefined) {
    throw new Error(
      'No field of the query type takes an id and returns an order. Write the module by --without-schema.',
    );
  }
  const omitted: string[] = [];
  const order = select(found.type, 'order', false, { types: [found.type.name], entry: 'item', omitted });
  const nameOf = ({ path }: Candidate): string => path.map(({ name }) => name).join('.');
  const [leafField, ...above] = found.path.toReversed() as [Field, ...Field[]];
  const wrap = (text: string, { name }: Field): string => `${name} { ${text} }`;
  const inner = above.reduce(wrap, `${leafField.name}(${found.arg}: $id) {\n${queryOf(order, '    ')}\n  }`);
  const around = (type: string, { name }: Field): string => `{ ${name}: ${type} | null }`;
  const dataType = found.path.reduceRight(around, 'Order');
  const { table, skips, type } = draftTypes(order);
  const { currency, lines: money } = draftMoney(order);
  const nested = objectsIn(order).flatMap(({ children }) => children);
  const items = listIn(ITEMS, order) ?? listIn(ITEMS, nested);
  const placed = leaf(/placed\w*||created\w*||ordered\w*||submitted\w*||paid\w*||date/, order);
  const wanted = leaf(
    /requested\w*||scheduled\w*||wanted\w*||desired\w*||due\w*||slot\w*||ready(by|at)||(pickup|delivery)(at|time)/,
    order,
    nested,
  );
  const id = leaf(new RegExp(`${found.arg.replaceAll('_', '')}||id||uu?id||code||number`), order);
  const takesNumber = found.argType.startsWith('Int');
  const body = `${table}type Order = ${typeOf(order, '')};

export function toCanonicalOrder(data: ${dataType}): OrderInput${skips === '' ? '' : ' | Skipped'} | null {
  const order = data.${found.path.map(({ name }) => name).join('?.')};
  if (!order) return null;
${skips}  const currency: string = ${currency}
  const minor = (amount: string | number | null | undefined, field: string): number => toMinorUnits(amount, currency, field);
  return {
    serviceOrderId: ${text(id, true)},
    locationId: ${draftLocation(order)}, // TODO: the id in: expediter location put --location
    member: {
${draftPerson(order)
  .map((line) => `      ${line}\n`)
  .join('')}    },
    fulfillment: {
      type: ${type}
      destination: ${draftDestination(order, '      ')}
      requestedAt: ${time(wanted)}
    },
    items: ${entries(items, 'item', '    ')}
    money: {
${money.map((line) => `      ${line}\n`).join('')}    },
${draftDiscounts(order)}    notes: ${text(leaf(/notes?||remarks?||comments?||\w*instructions?||\w*notes?/, order))},
    placedAt: ${time(placed, true)}
    cancelledAt: ${draftCancelled(order, placed)}
  };
}
`;
  const mapped = body.replaceAll('?.', '.');
  const unused = leavesOf(order)
    .map(({ at }) => at.replaceAll('?.', '.'))
    .filter((at) =>
      mapped
        .split(at)
        .slice(1)
        .every((rest) => /^\w/.test(rest)),
    );
  const inHeader = `\nexport const headers = (token: string | undefined) => ({ '${header}': token ?? '' });\n`;
  const headers = header === undefined ? '' : inHeader;
  const used = HELPERS.filter((name) => new RegExp(`\\b${name}\\(`).test(body));
  const types = ['OrderInput', ...(skips === '' ? [] : ['Skipped'])];
  const imports = [...used, ...types.map((name) => `type ${name}`)].join(', ');
  const drafted = `/** Turns orders of our platform into Expediter's: ORDER_MODULE names this file. Check it: expediter platform check */
import { ${imports} } from 'expediter-platform';

export const query = \`query Order($id: ${found.argType}) {
  ${inner}
}\`;
${takesNumber ? '\nexport const variables = (orderId: string) => ({ id: Number(orderId) });\n' : ''}${headers}
${unused.length > 0 ? `// TODO: use these fields too, or leave them out of the query: ${unused.join(', ')}\n` : ''}${omitted.length > 0 ? `// TODO: the query lacks these lists, which may hold extras or discounts: ${omitted.join(', ').replaceAll('?.', '.')}\n` : ''}${body}`;
  const text_ = drafted
    .replaceAll(new RegExp(`^(?!.*TODO).*${UNKNOWN}.*$`, 'gm'), '$& // TODO: required')
    .replaceAll(/: null,$/gm, '$& // TODO: if you have it');
  const todos = text_.match(/TODO/g)?.length ?? 0;
  return { text: text_, field: nameOf(found), others: others.map(nameOf).slice(0, 5), todos };
}
