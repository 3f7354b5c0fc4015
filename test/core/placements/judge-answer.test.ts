/** What an answer with GraphQL errors means: for the order, for our query, or for all orders. */
import { describe, expect, it } from 'vitest';
import { answerJudge } from '../../../src/core/placements/ask-platform.ts';

const QUERY = `query Order($id: ID!) {
  shop {
    order: purchase(code: $id) {
      id
      lines { quantity customerGroup }
    }
  }
}`;

type Answer = { data?: unknown; errors?: object[] };

function judge({ data, errors = [] }: Answer, status = 200, query: string | undefined = QUERY) {
  const module = query === undefined ? {} : { query };
  const judged = answerJudge(module, () => {})({ status, headers: new Headers(), isReadable: true, data, errors });
  return { judgement: judged.judgement, fields: judged.fields };
}

describe('a refused field inside the order', () => {
  const path = ['shop', 'order', 'lines', 0, 'customerGroup'];
  const refused = (code: string, at: unknown = path): object => ({ message: 'no', path: at, extensions: { code } });
  const found = { judgement: 'field refused', fields: ['shop.order.lines.*.customerGroup'] };

  it.each<[string, Answer, number?]>([
    ['with the rest of the order', { data: { shop: { order: { id: '1', lines: [{ quantity: 1 }] } } } }],
    ['with null in place of the order, because the field is not nullable', { data: { shop: { order: null } } }],
    ['with null in place of all', { data: null }],
    ['without data', {}],
    ['with a status of a server that sets it by the code', { data: null }, 403],
  ])('is named, and does not count as a refusal of all orders: %s', (_what, answer, status) => {
    expect(judge({ ...answer, errors: [refused('FORBIDDEN')] }, status)).toEqual(found);
    expect(judge({ ...answer, errors: [refused('UNAUTHENTICATED'), refused('FORBIDDEN')] }, status)).toEqual(found);
  });

  it.each<[string, unknown, string, string]>([
    ['what leads to the order', ['shop'], 'refused', 'order refused'],
    ['the order', ['shop', 'order'], 'refused', 'order refused'],
    ['no path', null, 'refused', 'refused'],
    ['a path that is no list', 'shop.order.id', 'refused', 'refused'],
  ])('is another refusal than that of %s', (_what, at, unauthenticated, forbidden) => {
    expect(judge({ data: { shop: null }, errors: [refused('UNAUTHENTICATED', at)] }).judgement).toBe(unauthenticated);
    expect(judge({ data: { shop: null }, errors: [refused('FORBIDDEN', at)] }).judgement).toBe(forbidden);
    // Next to one of these, the field is not the only trouble.
    expect(judge({ data: null, errors: [refused('UNAUTHENTICATED', at), refused('FORBIDDEN')] }).judgement).toBe(
      'refused',
    );
  });

  it('is named only in words of our query', () => {
    const keys = ['shop', 'order', 'Ada Lovelace', 'Ada', 'x'.repeat(65), {}, null, 1.5, 'quantity'];
    expect(judge({ data: null, errors: [refused('FORBIDDEN', keys)] }).fields).toEqual([
      'shop.order.?.?.?.?.?.*.quantity',
    ]);
    const many = Array.from({ length: 9 }, () => refused('FORBIDDEN', [...path, ...path, ...path, ...path, ...path]));
    const { fields } = judge({ data: null, errors: many });
    expect(fields).toHaveLength(1);
    expect(fields[0]?.length).toBeLessThanOrEqual(200);
  });

  it('means a refusal of us without a query to compare with', () => {
    expect(judge({ data: null, errors: [refused('UNAUTHENTICATED')] }, 200, '{ orders { id } }').judgement).toBe(
      'refused',
    );
  });
});

describe('a query that does not fit', () => {
  const locations = [{ line: 5, column: 24 }];
  /** As each server says it. The sources are in `QUERY_CODES` and `QUERY_WORDS`. */
  it.each<[string, object, number?]>([
    [
      'Apollo Server',
      {
        message: 'Cannot query field "customerGroup" on type "Line".',
        locations,
        extensions: { code: 'GRAPHQL_VALIDATION_FAILED' },
      },
      400,
    ],
    [
      'gqlgen',
      {
        message: 'Cannot query field "customerGroup" on type "Line".',
        locations,
        extensions: { code: 'GRAPHQL_VALIDATION_FAILED' },
      },
      422,
    ],
    [
      'Saleor',
      {
        message: 'Cannot query field "customerGroup" on type "OrderLine".',
        locations,
        extensions: { exception: { code: 'GraphQLError' } },
      },
      400,
    ],
    ['Absinthe', { message: 'Cannot query field "customerGroup" on type "Line".', locations }],
    ['graphql-dotnet', { message: "Cannot query field 'customerGroup' on type 'Line'.", locations }, 400],
    [
      'Shopify',
      {
        message: "Field 'customerGroup' doesn't exist on type 'LineItem'",
        locations,
        path: ['query Order', 'shop', 'order', 'lines', 'customerGroup'],
        extensions: { code: 'undefinedField', typeName: 'LineItem', fieldName: 'customerGroup' },
      },
    ],
    [
      'graphql-java',
      {
        message:
          "Validation error (FieldUndefined@[shop/purchase/lines/customerGroup]) : Field 'customerGroup' in type 'Line' is undefined",
        locations,
        extensions: { classification: 'ValidationError' },
      },
    ],
    [
      'Hot Chocolate',
      {
        message: 'The field `customerGroup` does not exist on the type `Line`.',
        locations,
        path: ['shop'],
        extensions: {
          specifiedBy:
            'https://spec.graphql.org/October2021/#sec-Field-Selections-on-Objects-Interfaces-and-Unions-Types',
        },
      },
      400,
    ],
  ])('is one for %s, and the field is named', (_server, error, status) => {
    const found = { judgement: 'query refused', fields: ['customerGroup (line 5)'] };
    expect(judge({ errors: [error] }, status)).toEqual(found);
    expect(judge({ data: null, errors: [error] }, status)).toEqual(found);
  });

  it.each<[string, object, ...fields: string[]]>([
    ['Apollo Server, whose parser is older', { message: 'Syntax Error: Unexpected "$".' }],
    ['a parser with a code', { message: 'odd', extensions: { code: 'GRAPHQL_PARSE_FAILED' } }],
    [
      'Hasura',
      {
        message: "field 'customerGroup' not found in type: 'lines'",
        extensions: { path: '$.selectionSet.shop', code: 'validation-failed' },
      },
      'customerGroup',
    ],
    ['a missing argument', { message: 'Field "lines" argument "first" of type "Int!" is required.' }, 'lines'],
    ['fields of a scalar', { message: 'Field "lines" of type "L" must have a selection of subfields.' }, 'lines'],
    [
      'a variable of another type',
      { message: 'Variable "$id" of type "ID!" used in position expecting type "String!".' },
      'id',
    ],
    ['an unknown argument', { message: 'Unknown argument "code" on field "Shop.purchase".' }, 'code'],
    // The place of a field with an alias is that of the alias.
    [
      'a field with an alias',
      { message: 'Cannot query field "purchase" on type "S". Did you mean "order"?', locations: [{ line: 3 }] },
      'purchase (line 3)',
    ],
  ])('is one for %s', (_server, error, ...fields) => {
    expect(judge({ errors: [error] })).toEqual({ judgement: 'query refused', fields });
  });

  const invalid = { message: 'Cannot query field "id" on type "Line".' };
  it.each<[string, Answer, number, string]>([
    ['an answer with data', { data: { shop: { order: { id: '1' } } }, errors: [invalid] }, 200, 'failing'],
    ['a busy platform', { errors: [invalid] }, 429, 'failing'],
    ['a platform that is down', { errors: [invalid] }, 503, 'failing'],
    [
      'an error with a code of ours',
      { errors: [{ ...invalid, extensions: { code: 'INTERNAL_SERVER_ERROR' } }] },
      400,
      'failing',
    ],
    ['an invalid id', { errors: [{ ...invalid, extensions: { code: 'BAD_USER_INPUT' } }] }, 400, 'id invalid'],
    ['a wrong value', { errors: [{ message: 'Variable "$id" got invalid value "x"; no Int.' }] }, 400, 'failing'],
    ['another error', { errors: [{ message: 'the field is dry' }] }, 400, 'failing'],
  ])('is not the cause of %s', (_what, answer, status, judgement) => {
    expect(judge(answer, status)).toEqual({ judgement, fields: [] });
  });

  it.each<[string, unknown, string, ...fields: string[]]>([
    ['no word of another text', locations, 'Cannot query field "Ada" on type "Lovelace".'],
    ['no line outside of the query', [{ line: 4711 }], 'Cannot query field "quantity" on type "L".', 'quantity'],
    ['no line that is no number', [{ line: 'Ada' }], 'Cannot query field "quantity" on type "L".', 'quantity'],
    ['no line of places that are no list', 'Ada', 'Cannot query field "quantity" on type "L".', 'quantity'],
  ])('is named by %s', (_what, places, message, ...fields) => {
    expect(judge({ errors: [{ message, locations: places }] })).toEqual({ judgement: 'query refused', fields });
  });

  it('needs no message that is a text', () => {
    const extensions = { code: 'GRAPHQL_VALIDATION_FAILED' };
    for (const message of [null, 7, { toString: 1, valueOf: 2 }]) {
      expect(judge({ errors: [{ message, extensions }] })).toEqual({ judgement: 'query refused', fields: [] });
    }
  });
});
