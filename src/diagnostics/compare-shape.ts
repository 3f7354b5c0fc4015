import {
  getNamedType,
  getNullableType,
  isEnumType,
  isInterfaceType,
  isListType,
  isObjectType,
  isScalarType,
  Kind,
  parse,
  type FragmentDefinitionNode,
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLSchema,
  type SelectionSetNode,
} from 'graphql';
import { z } from 'zod';
import { CanonicalOrder } from '../core/domain/order.ts';

/** Differences between a document and the canonical shape, each in a few words. */
type ShapeComparison = {
  /** Because of these differences no order can be read. */
  wrong: string[];
  /** With these differences orders can be read, but something is missing or unused. */
  odd: string[];
};

type Field = { type: GraphQLOutputType | undefined; fields: Map<string, Field> | undefined };
/** A JSON Schema, as far as this file reads it. */
type Wanted = {
  type?: string;
  const?: unknown;
  enum?: unknown[];
  properties?: Record<string, Wanted>;
  required?: string[];
  items?: Wanted;
  oneOf?: Wanted[];
  anyOf?: Wanted[];
};

/** The JSON Schema types of GraphQL's own scalars. The values of other scalars may have any type. */
const KINDS: ReadonlyMap<string, readonly string[]> = new Map([
  ['Int', ['integer', 'number']],
  ['Float', ['number']],
  ['String', ['string']],
  ['ID', ['string']],
  ['Boolean', ['boolean']],
]);

/**
 * Compares the response keys of a query with the canonical order. With a schema it also compares their types.
 * @param query a valid GraphQL document
 */
export function compareShape(query: string, schema: GraphQLSchema | undefined): ShapeComparison {
  const found: ShapeComparison = { wrong: [], odd: [] };
  const order = responseOf(query, schema).get('order');
  if (order === undefined) return { wrong: ['it does not query a field "order"'], odd: [] };
  compare(order, z.toJSONSchema(CanonicalOrder, { io: 'input', unrepresentable: 'any' }) as Wanted, 'order', true);
  return found;

  function compare(field: Field, wanted: Wanted, path: string, isRequired: boolean): void {
    const report = (words: string): void => void (isRequired ? found.wrong : found.odd).push(words);
    const { properties, required, items, kinds, values } = merged(wanted);
    const type = field.type && getNullableType(field.type);
    if (items !== undefined) {
      if (type !== undefined && !isListType(type)) return report(`${path} is not a list there`);
      return compare(
        { ...field, type: type && (type as { ofType: GraphQLOutputType }).ofType },
        items,
        path,
        isRequired,
      );
    }
    if (type !== undefined && isListType(type)) return report(`${path} is a list there`);
    if (properties === undefined) return compareLeaf(type && getNamedType(type), kinds, values, path, report);
    for (const [key, each] of Object.entries(properties)) {
      const below = field.fields?.get(key);
      const mustBe = isRequired && required.includes(key);
      if (below !== undefined) compare(below, each, `${path}.${key}`, mustBe);
      else if (mustBe) report(`it does not query ${path}.${key}, which every order needs`);
    }
    for (const key of field.fields?.keys() ?? []) {
      if (!Object.hasOwn(properties, key) && key !== '__typename') {
        found.odd.push(`it queries ${path}.${key}, which no order has`);
      }
    }
  }
}

function compareLeaf(
  type: GraphQLNamedType | undefined,
  kinds: readonly string[],
  values: readonly unknown[],
  path: string,
  report: (words: string) => void,
): void {
  if (isEnumType(type)) {
    const names = type.getValues().map(({ name }) => name);
    const isApt = values.length === 0 ? kinds.includes('string') : names.some((name) => values.includes(name));
    if (!isApt)
      report(`${path} is one of ${names.slice(0, 5).join(', ')} there, not ${values.join(' or ') || kinds.join()}`);
  } else if (isScalarType(type) && kinds.length > 0) {
    const own = KINDS.get(type.name);
    if (own !== undefined && !own.some((kind) => kinds.includes(kind))) {
      report(`${path} is ${type.name} there, and must be ${kinds.join(' or ')}`);
    }
  } else if (isObjectType(type)) {
    report(`${path} is an object there`);
  }
}

/** Merges the alternatives (`oneOf`, `anyOf`) of a schema. `required` has only the fields that all of them require. */
function merged(wanted: Wanted): {
  properties: Record<string, Wanted> | undefined;
  required: string[];
  items: Wanted | undefined;
  kinds: string[];
  values: unknown[];
} {
  const all = alternatives(wanted);
  const properties: Record<string, Wanted> = {};
  for (const [key, each] of all.flatMap((option) => Object.entries(option.properties ?? {}))) {
    properties[key] = Object.hasOwn(properties, key) ? { anyOf: [properties[key] ?? {}, each] } : each;
  }
  const [first = [], ...rest] = all.flatMap(({ required }) => (required === undefined ? [] : [required]));
  return {
    properties: Object.keys(properties).length > 0 ? properties : undefined,
    required: first.filter((key) => rest.every((each) => each.includes(key))),
    items: all.find(({ items }) => items !== undefined)?.items,
    kinds: [...new Set(all.flatMap(({ type }) => type ?? []))],
    values: [...new Set(all.flatMap((each) => each.enum ?? (each.const === undefined ? [] : [each.const])))],
  };
}

function alternatives(wanted: Wanted): Wanted[] {
  return [wanted, ...[...(wanted.oneOf ?? []), ...(wanted.anyOf ?? [])].flatMap(alternatives)];
}

/** Reads which fields the answer to a query has, by their response keys. */
function responseOf(query: string, schema: GraphQLSchema | undefined): Map<string, Field> {
  const { definitions } = parse(query);
  const fragments = new Map(
    definitions.flatMap((each): [string, FragmentDefinitionNode][] =>
      each.kind === Kind.FRAGMENT_DEFINITION ? [[each.name.value, each]] : [],
    ),
  );
  const operation = definitions.find((each) => each.kind === Kind.OPERATION_DEFINITION);
  const fields = new Map<string, Field>();
  if (operation !== undefined) collect(operation.selectionSet, schema?.getQueryType() ?? undefined, fields, []);
  return fields;

  function collect(
    { selections }: SelectionSetNode,
    parent: GraphQLNamedType | undefined,
    into: Map<string, Field>,
    within: readonly string[],
  ): void {
    for (const node of selections) {
      if (node.kind === Kind.FIELD) {
        const key = node.alias?.value ?? node.name.value;
        const isParent = isObjectType(parent) || isInterfaceType(parent);
        const type = isParent ? parent.getFields()[node.name.value]?.type : undefined;
        const field = into.get(key) ?? { type, fields: node.selectionSet && new Map<string, Field>() };
        into.set(key, field);
        if (node.selectionSet && field.fields)
          collect(node.selectionSet, type && getNamedType(type), field.fields, within);
        continue;
      }
      const fragment = node.kind === Kind.INLINE_FRAGMENT ? node : fragments.get(node.name.value);
      const name = node.kind === Kind.INLINE_FRAGMENT ? '' : node.name.value;
      // A fragment that contains itself is an error in the query. Skipping it here prevents an endless recursion.
      if (fragment === undefined || within.includes(name)) continue;
      const condition = fragment.typeCondition?.name.value;
      const on = condition === undefined ? parent : schema?.getType(condition);
      collect(fragment.selectionSet, on, into, name === '' ? within : [...within, name]);
    }
  }
}
