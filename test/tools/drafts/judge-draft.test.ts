/** The judge of drafts: what it calls right, what is open by a TODO, and what is wrong. */
import { buildSchema } from 'graphql';
import { expect, it } from 'vitest';
import { judgeDraft, LIMITS, typeErrorsOf, type Row, type Table } from '../../../tools/drafts/judge-draft.ts';

const schema = buildSchema(`
  type Query { order(id: ID!): Order }
  type Order { id: ID!  total: Money!  fee: Int  lines: Lines!  by: Person!  paidAt: String  old: Int @deprecated }
  type Money { gross: Amount!  net: Amount! } type Amount { amount: Float! }
  type Lines { edges: [Edge!]! } type Edge { node: Line! } type Line { sku: String!  parts: [[Part!]!]! } type Part { sku: String! }
  type Person { phone: String }`);

const QUERY =
  'id paidAt fee total { gross { amount } net { amount } } lines { edges { node { sku parts { sku } } } } by { phone }';

const MAPPER = `
import { minorUnits, toMinorUnits } from 'expediter-platform';
export function toCanonicalOrder(data: any) {
  const order = data.order;
  const paid = order.paidAt;
  const cents = (amount: number, field: string): number => minorUnits(amount, field);
  return {
    placedAt: paid ?? '',
    items: order.lines.edges.map(({ node: item }) => ({
      sku: item?.sku,
      parts: item.parts.flat().map((part) => ({ sku: part.sku })),
    })),
    money: {
      total: toMinorUnits(order.total.net.amount, 'EUR'), // TODO: or order.total.gross
      fee: cents(order.fee ?? 0, 'fee'),
      tip: 0, // TODO: if there is one
    },
  };
}`;

const module = (query: string, mapper = MAPPER): string =>
  `export const query = \`query Q($id: ID!) {\n  order(id: $id) { ${query} }\n}\`;\n${mapper}`;
const judge = (rows: readonly Row[], text = module(QUERY)): ReturnType<typeof judgeDraft> =>
  judgeDraft(schema, text, { root: 'order', customer: 'nobody', rows } satisfies Table);
const verdictOf = (row: Row, text?: string): string | undefined => judge([row], text).rows[0]?.verdict;

it('follows constants, parameters and lists to the path that a field reads', () => {
  expect(verdictOf({ field: 'placedAt', right: ['paidAt'] })).toBe('right');
  expect(verdictOf({ field: 'items.sku', right: ['lines.sku'] })).toBe('right');
  expect(verdictOf({ field: 'items.parts.sku', right: ['lines.parts.sku'] })).toBe('right');
  expect(verdictOf({ field: 'items.sku', right: ['lines.parts.sku'] })).toBe('wrong');
});

it('takes a wrong path for open only if a TODO next to it names the right one', () => {
  const total = { field: 'money.total', right: ['total.gross.amount'] };
  expect(verdictOf(total)).toBe('TODO');
  expect(verdictOf(total, module(QUERY, MAPPER.replace('or order.total.gross', 'check it')))).toBe('wrong');
  expect(verdictOf({ field: 'money.tip', right: ['fee'] })).toBe('wrong');
  expect(verdictOf({ field: 'money.tip', right: [] })).toBe('TODO');
  expect(verdictOf({ field: 'money.tip', right: [''] })).toBe('right');
  expect(verdictOf({ field: 'money.tax', right: ['fee'] })).toBe('wrong');
});

it('notices an amount that is read in the wrong units', () => {
  expect(verdictOf({ field: 'money.fee', right: ['fee'], units: 'whole' })).toBe('right');
  expect(verdictOf({ field: 'money.fee', right: ['fee'], units: 'decimal' })).toBe('wrong');
  const asDecimal = module(QUERY, MAPPER.replace('=> minorUnits(amount, field)', "=> toMinorUnits(amount, 'EUR')"));
  expect(verdictOf({ field: 'money.fee', right: ['fee'], units: 'whole' }, asDecimal)).toBe('wrong');
});

it('counts what is queried, and names what no ticket needs', () => {
  expect(judge([]).faults).toEqual(['nobody needs by.phone']);
  expect(judge([], module('id old')).faults).toEqual(['order.old is deprecated']);
  expect(judge([], module('id nothing')).faults).toEqual(['Cannot query field "nothing" on type "Order".']);
  const long = `${module('id')}\n// ${'-'.repeat(LIMITS.characters)}${'\n//'.repeat(LIMITS.lines)}`;
  expect(judge([], long).faults).toEqual([
    expect.stringMatching(/^\d+ lines$/),
    `a line of ${LIMITS.characters + 3} characters`,
  ]);
});

it('lets types be wrong only in the line of a TODO', async () => {
  const errors = await typeErrorsOf({
    sound: 'export const amount: number = 1;\n',
    open: 'export const amount: number = undefined; // TODO: the amount\n',
    wrong: "export const amount: number = '1';\n",
  });
  expect(errors).toEqual([expect.stringMatching(/wrong\.ts\(1,14\): error TS2322/)]);
});
