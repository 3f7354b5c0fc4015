/** Checks the example mappers for platforms that publish their schema: the query, and the types of its answer. */
import { join } from 'node:path';
import {
  getNullableType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isListType,
  isObjectType,
  Kind,
  parse,
  validate,
  type DocumentNode,
  type FieldNode,
  type GraphQLOutputType,
  type GraphQLSchema,
  type SelectionSetNode,
} from 'graphql';
import { readSchema } from '../../src/platform/draft-module.ts';
import { loadOrderModule } from '../../src/platform/load-order-module.ts';
import { deprecatedIn, HERE, typeErrorsOf } from './judge-draft.ts';

/** The mappers' folders, and the schemas' files. */
const MAPPERS = { shopify: 'shopify-admin', saleor: 'saleor' } as const;

/** How TypeScript reads what a server writes for a scalar. */
const SCALARS = new Map([
  ['ID', 'string'],
  ['String', 'string'],
  ['Int', 'number'],
  ['Float', 'number'],
  ['Boolean', 'boolean'],
  // https://shopify.dev/docs/api/admin-graphql/latest/scalars/Decimal: "serialized as a string"
  ['Decimal', 'string'],
  ['DateTime', 'string'],
]);

/** @returns the faults of all mappers */
export async function checkMappers(folder: string): Promise<string[]> {
  const faults: string[] = [];
  const checks: Record<string, string> = {};
  for (const [name, file] of Object.entries(MAPPERS)) {
    const path = join(HERE, 'examples/platforms', name, 'map-order.ts');
    const { query = '' } = await loadOrderModule({ ORDER_MODULE: path });
    const schema = await readSchema(join(folder, `${file}.graphql`));
    const document = parse(query);
    const wrong = validate(schema, document).map(({ message }) => message);
    const old = deprecatedIn(schema, document).map((each) => `${each} is deprecated`);
    faults.push(...[...wrong, ...old].map((each) => `${name}: ${each}`));
    if (wrong.length === 0) checks[name] = checkOf(path, answerType(schema, document));
  }
  return [...faults, ...(await typeErrorsOf(checks))];
}

/** Whatever the schema allows as an answer must fit what the mapper takes. */
const checkOf = (path: string, type: string): string => `import { toCanonicalOrder } from '${path}';
type Answer = ${type};
export const fits = (answer: Answer): Parameters<typeof toCanonicalOrder>[0] => answer;
`;

/** @returns the TypeScript type of all answers to a query */
export function answerType(schema: GraphQLSchema, document: DocumentNode): string {
  const fragments = new Map(
    document.definitions.flatMap((each) => (each.kind === Kind.FRAGMENT_DEFINITION ? [[each.name.value, each]] : [])),
  );
  const typeOf = (type: GraphQLOutputType, fields: readonly FieldNode[]): string => {
    const bare = getNullableType(type);
    const orNull = bare === type ? ' | null' : '';
    if (isListType(bare)) return `(${typeOf(bare.ofType, fields)})[]${orNull}`;
    const values = isEnumType(bare) ? bare.getValues().map(({ name }) => `'${name}'`) : [];
    if (values.length > 0) return `${values.join(' | ')}${orNull}`;
    if (!isCompositeType(bare)) return `${SCALARS.get(bare.name) ?? 'unknown'}${orNull}`;
    const objects = isAbstractType(bare) ? schema.getPossibleTypes(bare) : [bare];
    const sets = fields.flatMap(({ selectionSet }) => selectionSet ?? []);
    return `${[...new Set(objects.map(({ name }) => objectOf(name, sets)))].join(' | ')}${orNull}`;
  };
  const objectOf = (name: string, sets: readonly SelectionSetNode[]): string => {
    const type = schema.getType(name);
    if (!isObjectType(type)) throw new Error(`${name} is no object type`);
    const parts = Map.groupBy(
      sets.flatMap((set) => fieldsOf(name, set)),
      ({ alias, name: own }) => (alias ?? own).value,
    );
    const lines = [...parts].map(([key, fields]) => {
      const field = fields[0]?.name.value ?? '';
      if (field === '__typename') return `${key}: '${name}'`;
      const found = type.getFields()[field];
      if (found === undefined) throw new Error(`${name} has no field ${field}`);
      return `${key}: ${typeOf(found.type, fields)}`;
    });
    return `{ ${lines.join('; ')} }`;
  };
  /** The fields that are selected for an object of this type, also by fragments. */
  const fieldsOf = (name: string, { selections }: SelectionSetNode): FieldNode[] =>
    selections.flatMap((each) => {
      if (each.kind === Kind.FIELD) return [each];
      const fragment = each.kind === Kind.INLINE_FRAGMENT ? each : fragments.get(each.name.value);
      const condition = schema.getType(fragment?.typeCondition?.name.value ?? name);
      const isOf =
        condition?.name === name ||
        (isAbstractType(condition) && schema.getPossibleTypes(condition).some((type) => type.name === name));
      return fragment !== undefined && isOf ? fieldsOf(name, fragment.selectionSet) : [];
    });
  const operation = document.definitions.find((each) => each.kind === Kind.OPERATION_DEFINITION);
  const root = schema.getQueryType();
  if (operation === undefined || !root) throw new Error('there is no query');
  return objectOf(root.name, [operation.selectionSet]);
}
