/** Chooses for each field of our order the platform's field that fits best by name, type and nearness. */
import type { GraphQLSchema } from 'graphql';
import { explore, itemsOf, listsOf, wordsOf, type Found, type OrderField } from './order-in-schema.ts';

/** `best` is the choice. `close` may be right instead, the likelier first. */
export type Choice = { best: Found; close: Found[] };
export type Chosen = {
  /** By our field, such as `money.total`. */
  fields: Map<string, Choice>;
  /** By the draft's variable: the list whose entries it is. */
  lists: Readonly<Record<'item' | 'extra' | 'discount', Found | undefined>>;
  /** The lists, and JSON, that may hold what no field is for, by what they may hold. `net` is without tax. */
  hints: Record<'order' | 'item' | 'extra' | 'fee' | 'address' | 'discount' | 'type' | 'foreign' | 'net', Found[]>;
};

/** The objects that may be above a field. */
const NEAR = {
  own: /^$/,
  money:
    /^(totals?|pric(e|es|ing)|money|payment|summary|costs?|amounts?|sums?|bill|charges?|cart|checkout|basket|financials?|(discount|tax|price|cost|total)s? (info(rmation)?|summary|details?)|taxed price)$/,
  person:
    /^(customer|member|user|guest|buyer|client|diner|consumer|recipient|person|contact|e ?mail( address)?|phone( number)?)( info(rmation)?)?$/,
  place:
    /^(location|restaurant|store|shop|branch|venue|outlet|kitchen|canteen|cafe|merchant|vendor|retailer|seller|site|club|market)$/,
  handover: /^(handover|fulfill?ment|delivery|pick ?up|service|schedule|slot|delivery (method|slot)|shipping( line)?)$/,
  address: /\b(address|destination|drop ?off|ship to|deliver to|drop)$/,
  product: /^(product|item|article|dish|food|meal|variant|product variant|menu item|merchandise|modifier|option)$/,
} as const;

/**
 * Our fields, the draft's variable that has them, kinds, objects that may be above, and names. Names before a comma are
 * likelier. After a slash are the names of a field that no object is above, if they differ.
 */
const FIELDS = String.raw`
locationId: order text,number place: id, uu?id, code, number, reference, key, slug / PLACE (id|code|number|key|slug)
member.id: order text,number person: id, uu?id, code, number, reference, key / (customer|member|user|guest|buyer|client) (id|number)
member.name: order text person: (full|display) ?name|name, (nick|user) ?name|alias / (customer|recipient|guest|contact) (full )?name
member.first: order text person: (first|given) ?name|first
member.last: order text person: (last|family) ?name|surname|last
member.email: order text person: ((user|customer|contact) )?e ?mail( address)?|mail
member.phone: order text person+address: ((customer|contact|mobile) )?(phone|telephone|mobile|cell ?phone)( number)?|tel
requestedAt: order time handover: (requested|wanted|desired|scheduled|preferred|promised)( (delivery|pick ?up))?WHEN, (pick ?up|delivery|collection|ready|slot|serving)( slot)?WHEN, dueWHEN
notes: order text handover: NOTES, \w+ (notes?|remarks?|instructions)
placedAt: order time own: (placed|ordered|submitted|purchased)WHEN, (processed|confirmed|paid|completed)WHEN, createdWHEN, date|(date ?)?time(stamp)?
cancelledAt: order time own: cancell?edWHEN
cancelled: order enum,text own: status|state, \w+ (status|state)
pricesIncludeTax: order flag money: (prices? |is )?(tax(es)?|vat) included|(prices? )?includ\w* (tax(es)?|vat)
currency: order text,enum money+place: currency( (code|iso( \w+)?))?, iso( code| 4217)?, .* currency( code)?
total: order amount money: (grand )?total( price| cost| paid)?, payable|to pay|grand|gross( cents)?|amount( paid)?|sum|price, (current|original|final) total( price)?|total (charged|paid)
subtotal: order amount money: ((items?|lines?) )?subtotal( price)?( before discounts?)?|(items?|goods|products?|lines?) (total|price)|goods, (current |undiscounted )subtotal( price)?
tax: order amount money: (total )?(tax|taxes|vat|gst|sales tax)( total)?, current total tax|(included|additional) tax( total)?
tip: order amount money: (total )?(tips?|gratuity)( received| total)?
fee: order amount money: (total )?(delivery|shipping|courier|service)( fee| costs?| price| charge| total)?|(ship|shipment) total|fees?, total fees?, (bag|booking|handling|platform|(small|minimum) order) fee|(current |total )?(discounted )?shipping( price)?
discount: order amount money: (total )?(discounts?|rebates?|reductions?)( total)?|promo(tion)? total, ((cart|current|promo(tion)?|coupon|voucher) )?(total )?discounts?
street: address text,texts own: street( ?name)?|road
houseNumber: address text,number own: (house|street|building) ?(number|no), number|no
line1: address text,texts own: ((street|address|delivery) )?(line|address) 1|street address|(street|address) line, address|formatted|full address
line2: address text own: ((street|address) )?(line|address) 2|apartment|unit|addition|suite|floor|flat( no| number)?
postalCode: address text,number own: zip( ?code)?|postal( ?code)?|post ?code|pin ?code|plz
city: address text own: city|town|locality
region: address text own: region|state|province|county, country area|province code|zone code
country: address text,enum own: (country|territory) (code|iso( \w+)?), country( country)?
serviceItemId: item text,number product: sku|plu, id, code / ((product|variant|item) )?(sku|plu), (product|menu|variant|item|dish|food|meal)( variant| item)? (id|code), code, u?id|uuid
name: item text product: ((product|item|dish) )?(name|title|label), \w+ (name|title)
quantity: item number,text own: (ordered )?(quantity|qty|count|pieces|times)( ordered)?|how many
unitPrice: item amount product+money: ((original|undiscounted|base|regular) )?unit price|price (each|per unit), ((original|undiscounted|base|product|item|final) )?price|unit cost, amount|(list|retail|sales) price|cost
item.notes: item text own: NOTES
ageRestricted: item flag,number product: ((minimum|min|legal|required) )?age|age restricted|(is )?(alcohol(ic)?|adults?( only)?)
serviceModifierId: extra text,number product: sku|plu, id, code / ((product|modifier|option|extra) )?(sku|plu), (product|modifier|option|extra|add ?on|topping) (id|code), code, u?id|uuid
extra.name: extra text product: ((modifier|option|extra) )?(name|title|label), \w+ (name|title)
extra.quantity: extra number,text own: quantity|qty|count|pieces|times|how many
extra.unitPrice: extra amount product: (unit )?price|surcharge, amount|cost|(extra|additional|add ?on|topping) (price|cost)
discount.name: discount text own: name|title|label, description|code|reason
discount.amount: discount amount own: total|amount|cents, (total )?discount( amount)?, price, value`;
const WORDS = new Map([
  ['WHEN', '( at| on| time| date| ts| for| by| from| timestamp| epoch)*'],
  [
    'NOTES',
    '((customer|kitchen|order|special|guest|member|item|line) )?(notes?|remarks?|comments?|instructions|requests?)',
  ],
  ['PLACE', NEAR.place.source.slice(1, -1)],
]);
const EXTRAS = /\b(modifier|extra|option|topping|add ?on|choice|side|customi[sz]ation|selection|picked)s?$/;
const DISCOUNTS = /^(discount|rebate|voucher|promotion|reduction|coupon)s?$/;
const FEES = /^(?!.*(cancel|commission|refund)).*\b(fee|charge|surcharge)s?$/;
const KEYED = /^(meta ?data|meta ?fields|custom (fields|attributes)|attributes|properties|extensions)$/;
const NO_AMOUNT =
  /\b(reason|title|name|count|quantity|rate|percent\w*|code|id|type|status|number|currency|format\w*|display|text|label|note|digits|points|days|minutes)\b/;
/** Whether an amount or a currency is that of the customer, not the shop's own. */
const isForeign = ({ steps }: Found): boolean =>
  steps.some(({ name }) => /^(presentment|display|local)\w*(Money|Currency\w*)$/.test(name));

/** Candidates whose scores differ by at most this are close. */
const CLOSE = 26;

/** @param places names of `NEAR` @param names lists of patterns, for a field below an object, and for one that is not */
function choose(kinds: string, places: string, names: readonly string[], all: readonly Found[]): Choice | undefined {
  const near = places.split('+').map((place) => NEAR[place as 'own']);
  const [inner = [], outer = inner] = names.map((some) => some.split(', ').map((each) => new RegExp(`^(?:${each})$`)));
  const isAmount = kinds === 'amount';
  const rated = all.flatMap((found) => {
    const { words, above, kind, tax } = found;
    const isKind = isAmount ? /^(number|text)$/.test(kind) && !NO_AMOUNT.test(words) : kinds.split(',').includes(kind);
    const tier = (above.length > 0 ? inner : outer).findIndex((each) => each.test(words));
    if (!isKind || tier < 0 || !above.every((each) => near.some((place) => place.test(each)))) return [];
    const forms = !isAmount || tax === undefined ? 0 : tax === 'gross' ? 5 : -5;
    return [{ found, score: 100 - tier * 20 - above.length * 8 + forms - (isForeign(found) ? 6 : 0) }];
  });
  const [first, ...others] = rated.toSorted((a, b) => b.score - a.score);
  if (first === undefined) return undefined;
  const close = others.filter(
    ({ found, score }) =>
      first.score - score <= CLOSE &&
      // An object below a price that does not say its tax may have the one with it.
      (!isAmount || found.above.length === first.found.above.length || (found.tax === 'gross' && !first.found.tax)) &&
      (isForeign(first.found) || !isForeign(found)),
  );
  return { best: first.found, close: close.slice(0, 2).map(({ found }) => found) };
}

/** What a value of an enum, or the name of a type, says about how food is handed over. */
export function handoverOf(value: string): 'delivery' | 'pickup' | 'table' | undefined {
  if (/dine|table|eat_?in|on_?site|in_?house/i.test(value)) return 'table';
  if (/deliver|courier|ship|drop|rider/i.test(value)) return 'delivery';
  return /pick|take|collect|carry|to_?go|warehouse|store|counter/i.test(value) ? 'pickup' : undefined;
}

function chooseType(all: readonly Found[]): Choice | undefined {
  const rated = all.flatMap((found) => {
    const { kind, words, above, values } = found;
    const known = values.filter((value) => /delivery|pickup/.test(handoverOf(value) ?? '')).length;
    const isState = /stat(us|e)|stage|phase|progress|source|channel|country|currency|pay/i.test(
      words + found.type.name,
    );
    const isNamed =
      kind === 'text' && /^((fulfill?ment|delivery|service|order) )?(type|method|mode|handover)$/.test(words);
    const score = known > 0 && !isState ? 2 + Math.min(known, 2) : isNamed ? 1 : 0;
    return score > 0 && above.every((each) => NEAR.handover.test(each)) ? [{ found, score }] : [];
  });
  const [best] = rated.toSorted((a, b) => b.score - a.score);
  return best && { best: best.found, close: [] };
}

/** The fields of the address to which a delivery goes. */
function addressIn(all: readonly Found[]): Found[] {
  const rated = all.flatMap(({ steps, above, words, kind }) => {
    const isOurs = above.some((each) => NEAR.place.test(each)) || steps.some(({ on }) => handoverOf(on) === 'pickup');
    const isStreet = /^(street( ?name)?|((street|address) )?(line|address) 1|street address)$/.test(words);
    if (!isStreet || !/^texts?$/.test(kind) || above.length === 0 || isOurs) return [];
    const isTo = above.some((each) => handoverOf(each) === 'delivery' || NEAR.handover.test(each));
    const score =
      2 * Number(NEAR.address.test(above.at(-1) ?? '')) + Number(isTo) - 4 * Number(NEAR.person.test(above[0] ?? ''));
    return [{ steps: steps.slice(0, -1), depth: above.length, score }];
  });
  const [best] = rated.toSorted((a, b) => b.score - a.score);
  const isBelow = ({ steps }: Found): boolean =>
    best?.steps.every(({ name }, nth) => name === steps[nth]?.name) === true;
  return all.filter(isBelow).map((each) => ({
    ...each,
    root: 'address',
    skip: best?.steps.length ?? 0,
    above: each.above.slice(best?.depth),
  }));
}

/** @param refused paths from the order that the token may not read */
export function chooseFields(schema: GraphQLSchema, field: OrderField, refused: ReadonlySet<string>): Chosen {
  const below = (...from: Parameters<typeof explore>): Found[] =>
    explore(...from).filter(({ steps }) => !steps.some((_, nth) => refused.has(pathOf(steps.slice(0, nth + 1)))));
  const order = below(schema, field.type);
  const entriesOf = (list: Found | undefined, root: string): Found[] =>
    list ? below(schema, list.type, list.steps, root) : [];
  const item = itemsOf(schema, order);
  const items = entriesOf(item, 'item');
  const extra = listsOf(schema, items, EXTRAS, /price|surcharge|cost|quantity|times/)[0];
  const discount = listsOf(schema, order, DISCOUNTS, /^(total|amount|value|price|cents)$/).find(({ above }) =>
    above.every((each) => NEAR.money.test(each)),
  );
  const all = [
    ...order,
    ...addressIn(order),
    ...items,
    ...entriesOf(extra, 'extra'),
    ...entriesOf(discount, 'discount'),
  ];
  const fields = new Map<string, Choice>();
  for (const line of FIELDS.trim().split('\n')) {
    const [, name = '', root = '', kinds = '', places = '', names = ''] =
      /^(.*?): (\S+) (\S+) (\S+): (.*)$/.exec(line) ?? [];
    const patterns = names.replaceAll(/WHEN|NOTES|PLACE/g, (word) => WORDS.get(word) ?? '').split(' / ');
    const isApt = ({ kind, values }: Found): boolean =>
      name !== 'cancelled' || kind === 'text' || values.some((value) => /cancel/i.test(value));
    const apt = all.filter((found) => found.root === root && isApt(found));
    const choice = choose(kinds, places, patterns, apt);
    // The currency of each amount is the same.
    if (choice) fields.set(name, name === 'currency' ? { ...choice, close: [] } : choice);
  }
  const id = choose(
    'text,number',
    'own',
    [`${wordsOf(field.arg).replace(/^(order|purchase) /, '')}, id, uu?id, code, number`],
    order,
  );
  const type = chooseType(order);
  if (id) fields.set('serviceOrderId', id);
  if (type) fields.set('type', type);
  const total = fields.get('total');
  const net = total?.best.tax === 'gross' && total.close.find(({ tax }) => tax === 'net');
  if (net) fields.set('totalNet', { best: net, close: [] });
  if (fields.has('discount')) for (const name of ['discount.amount', 'discount.name']) fields.delete(name);
  const fee = fields.get('fee');
  const lists = (of: readonly Found[], pattern: RegExp, kinds = /list|json|text/): Found[] =>
    of.filter((each) => isOwn(each) && kinds.test(each.kind) && pattern.test(each.words)).slice(0, 3);
  return {
    fields,
    lists: { item, extra, discount: fields.has('discount.amount') ? discount : undefined },
    hints: {
      order: lists(order, KEYED),
      item: lists(items, KEYED),
      extra: [...lists(items, EXTRAS), ...lists(items, KEYED)],
      fee: lists(order, FEES, /list|number|text/).filter((each) => each !== fee?.best && !fee?.close.includes(each)),
      address: lists(order, /^((delivery|shipping) )?address$/),
      discount: lists(order, /\b(discount|voucher|promotion|coupon)s?\b/, /list|json|text|number/),
      type: lists(order, /^(fulfill?ments?|shipping|deliver\w*)( (lines|orders))?$/),
      foreign: order.filter(isForeign),
      net: ['unitPrice', 'subtotal', 'fee'].flatMap((name) => fields.get(name)?.close.find(isNet) ?? []),
    },
  };
}
const isNet = ({ tax }: Found): boolean => tax === 'net';
const isOwn = ({ above }: Found): boolean => above.length === 0;
const pathOf = (steps: Found['steps']): string => steps.map(({ name }) => name).join('.');

/** Whether the total and all that it consists of are known with their tax. Amounts without it are then no alternative. */
export function settleTax({ fields }: Chosen): boolean {
  const sums = ['total', 'subtotal', 'fee', 'unitPrice'].flatMap((name) => fields.get(name) ?? []);
  const discount = fields.get('discount.amount');
  const isGross = sums.every(({ best }) => best.tax === 'gross') && discount?.best.tax !== 'net';
  for (const choice of isGross ? [...sums, ...(discount ? [discount] : [])] : [])
    choice.close = choice.close.filter(({ tax }) => tax !== 'net');
  return isGross;
}
