import { flattenModifiers } from '../core/domain/flatten-modifiers.ts';
import { discountsOf, feesOf, taxIsOnTop, toDecimal } from '../core/domain/money.ts';
import type { CanonicalOrder, Modifier } from '../core/domain/order.ts';

/** The characters of a line of a receipt printer with paper of 80 mm, in its usual font. */
const WIDTH = 42;
const RULE = '-'.repeat(WIDTH);
/** Words with the blank after them. A longer word is cut. */
const WORDS = /\S{1,20} ?/gu;

type Item = CanonicalOrder['items'][number];

/** Writes an order as a kitchen's printer would. Its call-out code is chosen only when it is placed. */
export function ticketText({ member, fulfillment, items, money, notes, ...parts }: CanonicalOrder): string {
  const { type, requestedAt, destination: to } = fulfillment;
  const price = (amount: number): string => toDecimal(amount, money.currency);
  const sums = { money, ...parts };
  const taxes = parts.taxes?.length ? parts.taxes : [{ name: 'Tax', amount: money.tax, rate: undefined }];
  const suffix = taxIsOnTop({ items, money }) ? '' : ', included';
  const street = to && [to.line1, to.line2].filter(Boolean).join(', ');
  const city = to && [[to.postalCode, to.city].filter(Boolean).join(' '), to.region, to.country];
  const blocks = [
    [
      ...row('(code)', type.toUpperCase()),
      ...row(member.name, member.phone ?? ''),
      ...row(`Wanted: ${requestedAt?.replace('T', ' ') ?? 'as soon as possible'}`),
    ],
    items.flatMap((item) => itemRows(item, price)),
    notes === undefined ? [] : row(`! ${notes}`),
    [
      ...row('Subtotal', price(money.subtotal)),
      ...discountsOf(sums).flatMap(({ name, amount }) => row(name, price(-amount))),
      ...feesOf(sums).flatMap(({ name, amount }) => row(name, price(amount))),
      ...(money.tip > 0 ? row('Tip', price(money.tip)) : []),
      ...taxes.flatMap(({ name, amount, rate }) =>
        amount === 0 ? [] : row(`${name}${rate === undefined ? '' : ` ${rate} %`}${suffix}`, price(amount)),
      ),
      ...row('TOTAL', `${price(money.total)} ${money.currency}`),
    ],
    [street, city?.filter(Boolean).join(', '), to?.instructions].flatMap((line) => (line ? row(line) : [])),
  ];
  return blocks
    .filter((block) => block.length > 0)
    .map((block) => block.join('\n'))
    .join(`\n${RULE}\n`);
}

/** Writes an item and its modifiers, all with their quantities in the order. */
function itemRows(item: Item, price: (amount: number) => string): string[] {
  return [
    ...flattenModifiers<Item | Modifier>([item]).flatMap(({ name, quantity, unitPrice = 0 }, nth) =>
      nth === 0
        ? row(`${quantity} x ${name}`, price(unitPrice * quantity))
        : row(
            `    + ${quantity > 1 ? `${quantity} x ` : ''}${name}`,
            unitPrice === 0 ? '' : price(unitPrice * quantity),
          ),
    ),
    ...(item.ageRestricted ? row('    CHECK AGE') : []),
    ...(item.notes === undefined ? [] : row(`    ! ${item.notes}`)),
  ];
}

/** Writes a text and an amount at the right end of its first line. A long text is continued under its first word. */
function row(text: string, amount = ''): string[] {
  const [mark = ''] = /^[ +!]*/.exec(text) ?? [];
  const lines = [mark];
  for (const word of text.slice(mark.length).replaceAll(/\s+/g, ' ').match(WORDS) ?? []) {
    const space = WIDTH - (lines.length > 1 ? 0 : amount.length + 1);
    const last = lines.pop() ?? '';
    if (`${last}${word}`.trimEnd().length <= space) lines.push(last + word);
    else lines.push(last, ' '.repeat(mark.length) + word);
  }
  const [first = '', ...rest] = lines.map((line) => line.trimEnd());
  return [amount === '' ? first : `${first.padEnd(WIDTH - amount.length)}${amount}`, ...rest];
}
