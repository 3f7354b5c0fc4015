import { expect, it } from 'vitest';
import { z } from 'zod';
import { issueInWords } from '../../../src/core/domain/issue-in-words.ts';
import { readCanonicalOrder } from '../../../src/core/domain/read-canonical-order.ts';
import { shapeIssues } from '../../../src/core/domain/shape-issues.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';

type Fields = Record<string, unknown>;

/** What holds a delivery with one field replaced, without the beginning that all have. */
function wordsOf(path: string, value: unknown): string {
  const order: Fields = structuredClone(sampleOrder({ serviceOrderId: 'order-1', type: 'delivery' }));
  const names = path.split('.');
  const parent = names.slice(0, -1).reduce((at, name) => at[name] as Fields, order);
  parent[names.at(-1) ?? ''] = value;
  try {
    readCanonicalOrder(path === '' ? value : order, { serviceOrderId: 'order-1' });
  } catch (error) {
    return (error as Error).message.replace('the order cannot be read: ', '');
  }
  return 'nothing';
}

it.each<[string, unknown, string]>([
  ['', 'order', 'The whole value is a string; an object is required'],
  ['', null, 'The whole value is null; an object is required'],
  ['serviceOrderId', 'order-2', 'serviceOrderId is not the id that was requested'],
  ['serviceOrderId', 4711, 'serviceOrderId is a number; a string is required'],
  ['locationId', '', 'locationId is empty'],
  ['locationId', '\t', 'locationId is blank; an id is required'],
  ['locationId', 'x'.repeat(256), 'locationId is longer than 255 characters'],
  ['locationId', 'a\0', 'locationId contains a NUL or a lone surrogate; an id cannot'],
  ['member', undefined, 'member is missing; an object is required'],
  ['member.name', null, 'member.name is missing; a string is required'],
  ['member.name', ' ', 'member.name is blank; text is required'],
  ['fulfillment', 'pickup', 'fulfillment is a string; an object is required'],
  ['fulfillment.type', undefined, 'fulfillment.type is missing; pickup or delivery is required'],
  ['fulfillment.type', 'PICKUP', 'fulfillment.type is neither pickup nor delivery'],
  ['fulfillment.destination', null, 'fulfillment.destination is missing; an object is required'],
  ['items', {}, 'items is an object; a list is required'],
  ['items', [], 'items is empty'],
  ['items', [null], 'items.0 is null; an object is required'],
  ['items.0.quantity', '2', 'items.0.quantity is a string; a number is required'],
  [
    'items.0.quantity',
    1.5,
    'items.0.quantity has a fraction: write the weight into the name or notes, and a quantity of 1 with the price of all of it',
  ],
  ['items.0.unitPrice', 1.5, 'items.0.unitPrice has a fraction; a whole number is required'],
  [
    'items.0.unitPrice',
    -350,
    'items.0.unitPrice is negative: write a coupon into money.discount and discounts, and not as an item',
  ],
  ['items.0.quantity', 0, 'items.0.quantity is below 1: is it a cancelled line? Leave it out'],
  ['items.0.quantity', 10_000, 'items.0.quantity is above 9999'],
  // Two faults of one field are one sentence.
  ['items.0.quantity', 1e20, 'items.0.quantity is above 9007199254740991'],
  ['items.0.quantity', NaN, 'items.0.quantity is a value that JSON lacks, such as NaN; a number is required'],
  ['items.0.quantity', -Infinity, 'items.0.quantity is a value that JSON lacks, such as NaN; a number is required'],
  ['items.0.ageRestricted', 'yes', 'items.0.ageRestricted is a string; a boolean is required'],
  ['items.0.notes', ['no nuts'], 'items.0.notes is a list; a string is required'],
  ['money.tip', -1, 'money.tip is below 0'],
  ['money.currency', 'euro', 'money.currency is not an ISO 4217 code such as EUR'],
  ['placedAt', new Date(0), 'placedAt is an object; a string is required'],
  ['placedAt', 'x'.repeat(65), 'placedAt is not an RFC 3339 time with an offset, such as 2027-01-31T18:00:00Z'],
  ['placedAt', '9999-12-31T18:00:00Z', 'placedAt has a year or an offset that cannot be stored'],
])('an invalid order is described in a sentence: %s %j', (path, value, words) => {
  expect(wordsOf(path, value)).toBe(words);
});

it('a message names at most ten wrong fields and counts the others', () => {
  expect(wordsOf('items', Array(12).fill(null))).toMatch(/ items\.9 is null; an object is required\. … and 2 more$/);
});

it.each<[z.ZodType, unknown, string]>([
  [z.string().max(1), 'ab', 'is longer than 1 character'],
  [z.string().min(8), 'ab', 'is shorter than 8 characters'],
  [z.array(z.int()).max(1), [1, 2], 'has more than 1 entry'],
  [z.array(z.int()).max(2), [1, 2, 3], 'has more than 2 entries'],
  [z.array(z.int()).min(2), [], 'has fewer than 2 entries'],
  [z.number().positive(), 0, 'is not above 0'],
  [z.number().lt(5), 5, 'is not below 5'],
  [z.enum(['a', 'b']), 'c', 'must be a or b'],
  [z.enum(['a', 'b']), undefined, 'is missing; a or b is required'],
  [z.literal('a'), 'c', 'must be a'],
  [z.record(z.string(), z.string()), [], 'is a list; an object is required'],
])('invalid settings and webhooks get the same kind of sentence: "$2"', (schema, value, words) => {
  const { error } = z.object({ it: schema }).safeParse({ it: value }, { reportInput: true });
  expect(error && shapeIssues(error).map(issueInWords)).toEqual([`it ${words}`]);
});
