/** Finds a platform's query for one order, and the fields below it, with their types and the words of their names. */
import {
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isListType,
  isNonNullType,
  isUnionType,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  type GraphQLType,
} from 'graphql';

type Field = GraphQLField<unknown, unknown>;

/** A field on a way. `on` is the type of its inline fragment, `lists` 2 for a list of lists. `lacks`: it may be null. */
export type Step = { name: string; on: string; args: string; lists: number; lacks: boolean };

/** A field that may be of use. */
export type Found = {
  /** The way from the order. The first `skip` steps lead to `root`, a variable of the draft, such as an item. */
  steps: readonly Step[];
  root: string;
  skip: number;
  type: GraphQLNamedType;
  kind: 'text' | 'number' | 'time' | 'flag' | 'enum' | 'json' | 'list' | 'texts' | 'typename';
  /** The words of its name without those that say nothing: `total` for `totalPriceSet { shopMoney { amount } }`. */
  words: string;
  /** The words of each object above, from `root` on. */
  above: readonly string[];
  /** Whether an amount includes the tax. */
  tax: 'gross' | 'net' | undefined;
  /** How an amount or a time is written, if the schema says it. An instant is RFC 3339 with an offset. */
  unit: 'minor' | 'decimal' | 'instant' | 's' | 'ms' | undefined;
  values: readonly string[];
};

/** A query field that gives one order by its id. `on` is the order's type if it needs an inline fragment. */
export type OrderField = { steps: readonly Step[]; on: string; arg: string; argType: string; type: GraphQLNamedType };

/** Writes `orderPlacedAt` and `order_placed_at` as "order placed at". */
export const wordsOf = (name: string): string =>
  name
    .replaceAll(/(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[a-zA-Z])(?=\d)|_+/g, ' ')
    .toLowerCase()
    .replace(/sub total/, 'subtotal')
    .replace(/(?<=\w)( v 2| by( \w+)* id)$/, '')
    .trim();

/** What no ticket needs: people other than the member, what happened to the order, money that went back. */
const SKIPPED =
  /\b(staff|admin\w*|employees?|manager|owner|author|driver|agent|approv\w*|history|events?|timeline|billing|invoices?|survey|journey|marketing|drafts?|refunds?|returns?|private|internal|risks?|page info|log ?in|passw\w*|birth\w*|avatar|translat\w*|default|home|ip|weight)\b/;
/** Objects whose fields are as near as their own. */
const CUSTOM = /^(custom|extra|additional) (fields?|data)$/;
const FORMS =
  /^(gross|net|tax|vat|\w+ money|(incl|excl)\w*( tax| vat)?|(with|without|before|after) tax(es)?|currency( code)?)$/;
const AMOUNT = /^(amount|value|cents?( amount)?|(in )?minor( units)?|decimal)$/;
const GROSS = / ?\b((with|after) (tax(es)?|vat|gst)|gross|incl?(uding|usive)?( of)?( (tax(es)?|vat|gst))?)\b/;
const NET = / ?\b((without|before|pre|exc?) (tax(es)?|vat|gst)|net|excl\w*( (tax(es)?|vat|gst))?)\b/;
const PLAIN = /(?<=\w) ((shop |presentment )?money|amount|value|set|cents?|(in )?minor( units)?)\b|^order (?=\w)/g;
const MEMBERS_MAX = 8;

const listsIn = (type: GraphQLType): number => {
  const inner = getNullableType(type);
  return isListType(inner) ? 1 + listsIn(inner.ofType) : 0;
};
const needed = ({ args }: Field) => args.filter((arg) => isNonNullType(arg.type) && arg.defaultValue === undefined);
const fieldsOf = (type: GraphQLNamedType): Field[] =>
  (isCompositeType(type) && !isUnionType(type) ? Object.values(type.getFields()) : []).filter(
    ({ deprecationReason }) => typeof deprecationReason !== 'string',
  );
const fieldOf = (type: GraphQLNamedType, pattern: RegExp) =>
  fieldsOf(type).find(({ name }) => pattern.test(wordsOf(name)));

function stepOf(field: Field, on = ''): Step {
  const many = field.args.find(({ name, type }) => /^(first|limit)$/.test(name) && String(type).startsWith('Int'));
  const args = many === undefined ? '' : `(${many.name}: 100)`;
  return { name: field.name, on, args, lists: listsIn(field.type), lacks: !isNonNullType(field.type) || on !== '' };
}

/** The way through a list, or a connection, and the type of its entries. Undefined for one value. */
function listOf(field: Field): { to: Step[]; entry: GraphQLNamedType } | undefined {
  const type = getNamedType(field.type);
  if (listsIn(field.type) > 0) return { to: [], entry: type };
  const nodes = fieldOf(type, /^nodes$/) ?? fieldOf(type, /^edges$/);
  if (nodes === undefined || listsIn(nodes.type) === 0) return undefined;
  const entry = getNamedType(nodes.type);
  const node = nodes.name === 'edges' ? fieldOf(entry, /^node$/) : undefined;
  return { to: [stepOf(nodes), ...(node ? [stepOf(node)] : [])], entry: node ? getNamedType(node.type) : entry };
}

/** True for an amount with its currency, and for one amount in several forms. */
function isMoney(type: GraphQLNamedType): boolean {
  const fields = fieldsOf(type);
  if (fieldOf(type, AMOUNT) && (fieldOf(type, /^currency/) || /money|price|amount/i.test(type.name))) return true;
  const isForm = ({ name }: Field): boolean => FORMS.test(wordsOf(name));
  return fields.every(isForm) && fields.some((field) => isCompositeType(getNamedType(field.type)));
}

function kindOf(words: string, type: GraphQLNamedType): Found['kind'] {
  const name = wordsOf(type.name);
  if (isEnumType(type)) return 'enum';
  if (name === 'boolean') return 'flag';
  if (/json|^map$|^any|object|metadata/.test(name)) return 'json';
  if (/\b(date|time|datetime|instant|timestamp)\b/.test(name)) return 'time';
  if (/\b(u?int(eger)?|long|float|double|decimal|money|number|numeric|amount|price|big ?int)\b/.test(name))
    return /\b(at|ts|time(stamp)?|epoch|seconds|millis)$/.test(words) ? 'time' : 'number';
  return /\b(at|on|time(stamp)?|date|datetime|(wanted|requested|scheduled) (for|by))$|^(created|placed|ordered)$/.test(
    words,
  )
    ? 'time'
    : 'text';
}

/** @param about the descriptions of the field and its type */
function unitOf(kind: Found['kind'], words: string, type: string, about: string): Found['unit'] {
  if (kind === 'time' && /^(Int|Float)$/.test(type))
    return /milli|\bms\b/i.test(about + words) ? 'ms' : /\bseconds\b/i.test(about) ? 's' : undefined;
  if (kind === 'time') return /datetime|instant|timestamp/i.test(type) ? 'instant' : undefined;
  if (/\b(cents|cent amount|minor)\b/.test(words)) return 'minor';
  if (/^(String|Float)$|decimal/i.test(type)) return 'decimal';
  return /(minor|smallest) (currency )?unit|in cents/i.test(about) ? 'minor' : undefined;
}

/**
 * Lists the fields below a type, near ones first: leaves and lists, through objects, unions and interfaces. It passes at
 * most one object with an id of its own: what is behind a second one belongs to something else.
 * @param to the way to the type, which the draft's variable `root` is
 */
export function explore(schema: GraphQLSchema, start: GraphQLNamedType, to: readonly Step[] = [], root = 'order') {
  const found: Found[] = [];
  const queue = [{ type: start, steps: to, above: [] as string[], inOne: '', seen: [start], ids: 0 }];
  for (const { type: parent, steps, above, inOne, seen, ids } of queue) {
    const members = isAbstractType(parent) ? schema.getPossibleTypes(parent) : [];
    const all = [parent, ...(members.length <= MEMBERS_MAX ? members : [])];
    const own = { tax: undefined, unit: undefined, above, root, skip: to.length, values: [] };
    if (all.length > 1) {
      const step = { name: '__typename', on: '', args: '', lists: 0, lacks: false };
      const values = members.map(({ name }) => name);
      found.push({
        ...own,
        steps: [...steps, step],
        type: parent,
        kind: 'typename',
        words: above.at(-1) ?? '',
        values,
      });
    }
    for (const of of all) {
      for (const field of fieldsOf(of)) {
        const type = getNamedType(field.type);
        const name = wordsOf(field.name);
        const isKnown = of !== parent && fieldsOf(parent).some((each) => each.name === field.name);
        const isSkipped = SKIPPED.test(name) || (isCompositeType(type) && SKIPPED.test(wordsOf(type.name)));
        if (isKnown || isSkipped || needed(field).length > 0) continue;
        const path = [...steps, stepOf(field, of === parent ? '' : of.name)];
        const list = listOf(field);
        const words = `${inOne} ${name}`.trim();
        if (list) {
          const entries = isCompositeType(list.entry) ? 'list' : 'texts';
          found.push({ ...own, steps: [...path, ...list.to], type: list.entry, kind: entries, words: name });
        } else if (!isCompositeType(type)) {
          const kind = kindOf(name, type);
          const unit = unitOf(kind, name, type.name, `${field.description ?? ''} ${type.description ?? ''}`);
          const tax = GROSS.test(words) ? 'gross' : NET.test(words) ? 'net' : undefined;
          const isAmount = kind === 'number' || kind === 'text';
          const short = words
            .replaceAll(PLAIN, '')
            .replace(isAmount ? GROSS : '', '')
            .replace(isAmount ? NET : '', '');
          const values = isEnumType(type) ? type.getValues().map((value) => value.name) : [];
          found.push({ ...own, steps: path, type, kind, words: short.trim() || words, tax, unit, values });
        } else {
          const passed = ids + Number(fieldOf(type, /^id$/) !== undefined);
          if (seen.includes(type) || passed > 1 || above.length > 2 || path.length - to.length > 6) continue;
          const isOne = isMoney(type) || /^(currency|country)$/.test(name);
          const further = isOne || CUSTOM.test(name) ? above : [...above, name];
          queue.push({
            type,
            steps: path,
            above: further,
            inOne: isOne ? words : '',
            seen: [...seen, type],
            ids: passed,
          });
        }
      }
    }
  }
  // `total` next to `totalWithTax` is without tax.
  const keyOf = (each: Found): string => [...each.above, each.words].join('/');
  const forms = new Map(found.flatMap((each) => (each.tax ? [[keyOf(each), each.tax]] : [])));
  const other = { gross: 'net', net: 'gross', none: undefined } as const;
  return found.map((each) => ({ ...each, tax: each.tax ?? other[forms.get(keyOf(each)) ?? 'none'] }));
}

/**
 * Finds the lists that a pattern names, maybe in groups, the nearest first.
 * @param has names a field of each entry
 */
export function listsOf(schema: GraphQLSchema, found: readonly Found[], pattern: RegExp, has: RegExp): Found[] {
  const below = (list: Found): Found[] => explore(schema, list.type, list.steps, list.root);
  const lists = found.filter(({ kind, above }) => kind === 'list' && above.length === 0);
  const groups = lists.filter(({ words }) =>
    /\b(groups?|containers?|parcels?|deliveries|courses|choices)$/.test(words),
  );
  const inner = groups.flatMap((group) => below(group).map((each) => ({ ...each, skip: group.skip })));
  return [...found, ...inner].filter(
    (list) =>
      list.kind === 'list' &&
      pattern.test(list.words) &&
      below(list).some(({ words, above }) => above.length === 0 && has.test(words)),
  );
}
const ITEMS =
  /^((order|purchase|line|basket|cart|menu|food|product) ?)?(items|lines|positions|products|entries|articles|dishes|meals|details)$/;
const COUNT = /^((ordered )?(quantity|qty|count|pieces|times)( ordered)?|how many)$/;
export const itemsOf = (schema: GraphQLSchema, found: readonly Found[]) => listsOf(schema, found, ITEMS, COUNT)[0];

const ORDER = /\b(orders?|purchase|sale|ticket)\b/;
const NO_ORDER =
  /\b(settings?|status|page|cart|abandoned|checkout|edit\w*|session|fulfill?ment|reverse|subscription|template|confirmation|line|item|tag|counts?)\b/;
const ID = /^((order|purchase|row|node) )?(id|code|number|uuid|key|ref\w*)$/;

/**
 * Finds the query fields that may give one order by its id, the best first. A global `node(id)` counts if there is no
 * other, and if the schema also lists orders, or customers with their orders: the API of a shop for its guests does not.
 */
export function findOrderFields(schema: GraphQLSchema): OrderField[] {
  const query = schema.getQueryType();
  if (!query) return [];
  const isOrder = (type: GraphQLNamedType): boolean => itemsOf(schema, explore(schema, type)) !== undefined;
  const plain = fieldsOf(query).filter((field) => needed(field).length === 0 && listsIn(field.type) === 0);
  const nested = plain.flatMap((above) => fieldsOf(getNamedType(above.type)).map((field) => [above, field]));
  const rated = [...fieldsOf(query).map((field) => [field]), ...nested].flatMap((path) => {
    const field = path.at(-1) as Field;
    const type = getNamedType(field.type);
    const asked = needed(field);
    const arg = (asked.length > 0 ? asked : field.args).find(({ name }) => ID.test(wordsOf(name)));
    const names = [wordsOf(field.name), wordsOf(type.name)];
    const isNamed =
      names.some((name) => ORDER.test(name)) && !names.some((name) => NO_ORDER.test(name) || SKIPPED.test(name));
    if (!arg || asked.length > 1 || listsIn(field.type) > 0 || !isNamed || !isOrder(type)) return [];
    const score = Number(/^(get |fetch |find )?(order|purchase)$/.test(names[0] ?? '')) * 3 + Number(arg.name === 'id');
    const last = { ...stepOf(field), args: `(${arg.name}: $id)`, lacks: true };
    const steps = [...path.slice(0, -1).map((above) => stepOf(above)), last];
    return [{ steps, on: '', arg: arg.name, argType: String(arg.type), type, score: score - path.length }];
  });
  if (rated.length > 0) return rated.toSorted((a, b) => b.score - a.score);
  const node = fieldsOf(query).find(({ name }) => name === 'node');
  const [arg] = node?.args ?? [];
  const abstract = node && getNamedType(node.type);
  const members = abstract && isAbstractType(abstract) ? schema.getPossibleTypes(abstract) : [];
  const order = members.find((type) => /^(\w+ )?(order|purchase)$/.test(wordsOf(type.name)) && isOrder(type));
  const lists = explore(schema, query).filter(({ kind }) => kind === 'list');
  const isListed = [...lists, ...lists.flatMap(({ type }) => explore(schema, type))].some(
    ({ kind, type }) => kind === 'list' && type === order,
  );
  if (!node || !arg || !order || !isListed) return [];
  const steps = [{ ...stepOf(node), args: `(${arg.name}: $id)`, lacks: true }];
  return [{ steps, on: order.name, arg: arg.name, argType: String(arg.type), type: order }];
}
