import { Kind, OperationTypeNode, parse, type DocumentNode } from 'graphql';

/**
 * Explains why a document can never fetch an order, whatever the platform's schema is.
 * @param given the names of the variables that are sent; undefined if unknown
 * @returns the end of a sentence that begins with the document's name, or undefined if nothing is wrong
 */
export function problemWithQuery(text: string, given: readonly string[] | undefined): string | undefined {
  let document: DocumentNode;
  try {
    document = parse(text);
  } catch (error) {
    return `is not a GraphQL document: ${(error as Error).message}`;
  }
  const operations = document.definitions.filter((each) => each.kind === Kind.OPERATION_DEFINITION);
  const [operation] = operations;
  if (operations.length !== 1 || operation?.operation !== OperationTypeNode.QUERY) {
    return 'must be exactly one query, with fragments if needed';
  }
  const lacking = (operation.variableDefinitions ?? [])
    .filter((each) => each.type.kind === Kind.NON_NULL_TYPE && each.defaultValue === undefined)
    .map((each) => each.variable.name.value)
    .filter((name) => given !== undefined && !given.includes(name));
  if (lacking.length > 0) return `needs the variable $${lacking.join(', $')}: only $id, the order id, is sent`;
  return undefined;
}
