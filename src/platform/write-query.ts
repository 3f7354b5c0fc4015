/** Writes a query for fields of a schema, the type of its answer, and how TypeScript reads them. */
import type { Found, OrderField, Step } from './order-in-schema.ts';

/** The queried fields below an object, by name. The fields of an inline fragment are below `... on Type`. */
export type Tree = Map<string, { step: Step; leaf: Found | undefined; below: Tree }>;

const WIDTH = 110;

export function plant(tree: Tree, [step, ...rest]: readonly Step[], leaf: Found): void {
  if (step === undefined) return;
  const name = step.on === '' ? step.name : `... on ${step.on}`;
  const isLast = rest.length === 0 && step.on === '';
  const node = tree.get(name) ?? { step: { ...step, name }, leaf: isLast ? leaf : undefined, below: new Map() };
  tree.set(name, node);
  plant(node.below, step.on === '' ? rest : [{ ...step, on: '' }, ...rest], leaf);
}

/** Joins parts in braces. Short parts share a line. */
function braced(head: string, parts: readonly string[], indent: string, join: string): string {
  const lines: string[] = [];
  for (const part of parts) {
    const joined = `${lines.at(-1)}${join} ${part}`;
    const isShort = lines.length > 0 && !joined.includes('\n') && indent.length + joined.length < WIDTH - 4;
    lines.splice(isShort ? -1 : lines.length, 1, isShort ? joined : part);
  }
  const short = `${head}{ ${lines[0]} }`;
  if (lines.length < 2 && !short.includes('\n') && indent.length + short.length <= WIDTH) return short;
  return `${head}{\n${lines.map((line) => `${indent}  ${line}${join}\n`).join('')}${indent}}`;
}

/** @returns the selection of the fields, in braces */
function printQuery(tree: Tree, indent: string, head = ''): string {
  const nodes = [...tree.values()].toSorted((a, b) => Number(b.leaf !== undefined) - Number(a.leaf !== undefined));
  const parts = nodes.map(({ step: { name, args, on }, leaf, below }) =>
    leaf ? name : printQuery(below, `${indent}  `, `${name}${on === '' ? args : ''} `),
  );
  return braced(head, parts, indent, '');
}

/** @returns the TypeScript type of an answer with the fields */
export function printType(tree: Tree, indent: string): string {
  const fields = [...tree.values()].flatMap((node) =>
    node.step.on === '' ? [{ ...node, mark: '' }] : [...node.below.values()].map((each) => ({ ...each, mark: '?' })),
  );
  const parts = fields.map(({ step: { name, lists, lacks }, leaf, below, mark }) => {
    const type = `${leaf ? kindOf(leaf) : printType(below, `${indent}  `)}${'[]'.repeat(lists)}`;
    return `${name}${mark}: ${type}${lacks || mark ? ' | null' : ''}`;
  });
  return braced('', [...new Set(parts)], indent, ';');
}

/** The TypeScript type of a leaf's value, without null. Values of enums are texts. */
function kindOf({ kind, type }: Found): string {
  if (kind === 'flag') return 'boolean';
  if (/^(Int|Float)$/.test(type.name)) return 'number';
  return kind === 'number' ? 'string | number' : 'string';
}

/** Writes the query for one order. */
export function documentOf({ steps, on, argType }: OrderField, tree: Tree): string {
  const fragment = printQuery(tree, '  ', on === '' ? '' : `... on ${on} `);
  const inner = on === '' ? fragment : `{ ${fragment} }`;
  const selection = steps.reduceRight((text, { name, args }) => `{ ${name}${args} ${text} }`, inner);
  return `query Order($id: ${argType}) {\n  ${selection.slice(2, -2)}\n}`;
}

/** How TypeScript reads a field: `order.customer?.name`. */
export const at = (root: string, steps: readonly Step[]): string =>
  steps.reduce((path, { name }, nth) => `${path}${steps[nth - 1]?.lacks === true ? '?.' : '.'}${name}`, root);

/** How TypeScript reads the entries of a list, maybe in a list: `(order.groups ?? []).flatMap((group) => group.lines)`. */
export function entriesAt(root: string, steps: readonly Step[]): string {
  const end = steps.findIndex(({ lists }) => lists > 0) + 1;
  const [to, rest] = [steps.slice(0, end || steps.length), end === 0 ? [] : steps.slice(end)];
  const path = `${at(root, to)}${to.some(({ lacks }) => lacks) ? ' ?? []' : ''}`;
  if (end === 0) return path;
  const all = `${path.includes('??') ? `(${path})` : path}${'.flat()'.repeat((to.at(-1)?.lists ?? 1) - 1)}`;
  const each = rest[0]?.name === 'node' ? 'edge' : `${root}Group`;
  return rest.length === 0 ? all : `${all}.flatMap((${each}) => ${entriesAt(each, rest)})`;
}
