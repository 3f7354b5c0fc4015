/** The types of answers by which the example mappers are checked. */
import { buildSchema, parse } from 'graphql';
import { expect, it } from 'vitest';
import { answerType } from '../../../tools/drafts/check-mappers.ts';

const schema = buildSchema(`
  type Query { order(id: ID!): Order }
  scalar Money
  type Order { id: ID!  total: Money!  lines: [Line]!  kind: Kind  way: Way! }
  type Line { count: Int!  price: Float }
  enum Kind { OLD NEW }
  union Way = Shop | Bike
  interface Place { name: String! }
  type Shop implements Place { name: String! }
  type Bike { id: ID! }`);
const typeOf = (fields: string): string =>
  answerType(schema, parse(`query Q($id: ID!) { order(id: $id) { ${fields} } }`));

it('the type of an answer says what may be null, and what the schema does not say is unknown', () => {
  expect(typeOf('id total kind')).toBe("{ order: { id: string; total: unknown; kind: 'OLD' | 'NEW' | null } | null }");
  expect(typeOf('lines { count price }')).toBe(
    '{ order: { lines: ({ count: number; price: number | null } | null)[] } | null }',
  );
});

it('the type of an answer has each object of a union with its own fields, by their aliases', () => {
  expect(typeOf('way { __typename ... on Place { label: name } ... on Bike { id } }')).toBe(
    "{ order: { way: { __typename: 'Shop'; label: string } | { __typename: 'Bike'; id: string } } | null }",
  );
});
