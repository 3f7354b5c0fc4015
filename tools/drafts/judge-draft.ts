/** Judges what `platform init` drafts: which fields of an order are read from the right place, and what is queried. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { getNamedType, isCompositeType, parse, TypeInfo, validate, visit, visitWithTypeInfo } from 'graphql';
import { Kind, type DocumentNode, type GraphQLSchema } from 'graphql';
import { parseAst } from 'rolldown/parseAst';
import { runProgram } from '../../world/processes/run-program.ts';

/** What a draft must contain for one field of `OrderInput`. */
export type Row = {
  /** `money.total`. A field of an item is `items.unitPrice`. Of `discounts.amount|money.discount`, the first that is there. */
  field: string;
  /**
   * Paths from the order, without `edges`, `node` and `nodes`. One is enough. Paths with a space between belong together:
   * `customer.firstName customer.lastName`. Of `email|customer.email` one or more. An empty path is null, a default, or no field at all. Without a path nothing
   * in the schema is right, and a TODO must say so.
   */
  right: readonly string[];
  /** Paths that may be read as well, such as a status that decides whether a time is used. */
  also?: readonly string[];
  /** Any TODO is enough if nothing is read, because the platform has no one place for it. */
  isOpen?: boolean;
  /** How the platform gives the amount. `whole` is in minor units, or in hundredths. */
  units?: 'whole' | 'decimal';
};

/** @see judgeDraft */
export type Table = {
  /** The query's path to the order, such as `order`. */
  root: string;
  /** The path of the person who ordered, such as `customer`. */
  customer: string;
  rows: readonly Row[];
};

export type Verdict = 'right' | 'TODO' | 'wrong';
export type Judged = { field: string; verdict: Verdict; drafted: string };

/** The most lines, characters of a line, queried values outside lists, and queried values of one list's entry. */
export const LIMITS = { lines: 120, characters: 140, values: 25, valuesOfEntry: 10 };

type Tree = { type: string; start: number; end: number; [key: string]: unknown };
const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && typeof (value as { type?: unknown }).type === 'string';
const childrenOf = (tree: Tree): Tree[] => Object.values(tree).flat().filter(isTree);
const get = (tree: Tree | undefined, key: string): Tree | undefined => {
  const value = tree?.[key];
  return isTree(value) ? value : undefined;
};
const listOf = (tree: Tree, key: string): Tree[] => (Array.isArray(tree[key]) ? tree[key].filter(isTree) : []);
const nameOf = (tree: Tree | undefined): string =>
  [tree?.['name'], tree?.['value']].find((each) => typeof each === 'string') ?? '';

const isFunction = (tree: Tree | undefined): tree is Tree => /Function/.test(tree?.type ?? '');
const all = (tree: Tree): Tree[] => [tree, ...childrenOf(tree).flatMap(all)];

/** Fields of which a path says nothing: those of connections. */
const CONNECTION = new Set(['edges', 'node', 'nodes']);
/** Fields of which a name says nothing: those of an amount. */
const AMOUNT = new Set(['amount', 'value', 'gross', 'net', 'shopMoney', 'presentmentMoney', 'centAmount', 'units']);

/** A module's text, with what its names stand for. */
class Draft {
  readonly lines: string[];
  readonly constants = new Map<string, Tree>();
  readonly variables = new Map<string, string>();
  readonly aliases = new Map<string, string>();
  readonly order: Tree;

  constructor(text: string, query: DocumentNode) {
    this.lines = text.split('\n');
    this.text = text;
    const program = parseAst(text, { lang: 'ts' }) as unknown as Tree;
    visit(query, { Field: ({ alias, name }) => void (alias && this.aliases.set(alias.value, name.value)) });
    const everything = all(program);
    const declared = everything.filter(({ type }) => type === 'VariableDeclarator');
    for (const each of declared) {
      const init = get(each, 'init');
      if (init !== undefined && get(each, 'id')?.type === 'Identifier')
        this.constants.set(nameOf(get(each, 'id')), init);
    }
    const functions = everything.filter(({ type }) => type === 'FunctionDeclaration');
    for (const each of functions) this.constants.set(nameOf(get(each, 'id')), each);
    const mapper = this.constants.get('toCanonicalOrder');
    if (mapper === undefined) throw new Error('The draft has no function toCanonicalOrder.');
    this.bind(listOf(mapper, 'params')[0], '');
    for (const each of declared) {
      const pattern = get(each, 'id');
      const init = get(each, 'init');
      if (pattern?.type === 'ObjectPattern' && init) this.bind(pattern, this.pathOf(init));
    }
    for (const call of everything.filter(({ type }) => type === 'CallExpression')) this.bindCallback(call);
    const objects = all(mapper).filter(({ type }) => type === 'ObjectExpression');
    const order = objects.find((each) => this.property(each, 'money') && this.property(each, 'items'));
    if (order === undefined) throw new Error('The draft returns no object with money and items.');
    this.order = order;
  }

  readonly text: string;

  /** Remembers which path a parameter stands for. */
  private bind(pattern: Tree | undefined, path: string | undefined): void {
    if (pattern === undefined || path === undefined) return;
    if (pattern.type === 'Identifier') this.variables.set(nameOf(pattern), path);
    if (pattern.type === 'AssignmentPattern') this.bind(get(pattern, 'left'), path);
    for (const each of pattern.type === 'ObjectPattern' ? listOf(pattern, 'properties') : [])
      this.bind(get(each, 'value'), this.under(path, nameOf(get(each, 'key'))));
  }

  private bindCallback(call: Tree): void {
    const callee = unwrap(get(call, 'callee'));
    if (callee?.type !== 'MemberExpression') return;
    const path = this.pathOf(get(callee, 'object'));
    const [given] = listOf(call, 'arguments');
    const callback = given?.type === 'Identifier' ? this.constants.get(nameOf(given)) : given;
    if (!isFunction(callback)) return;
    this.bind(listOf(callback, 'params')[nameOf(get(callee, 'property')) === 'reduce' ? 1 : 0], path);
  }

  private under(path: string, name: string): string {
    const field = this.aliases.get(name) ?? name;
    return CONNECTION.has(field) && path !== '' ? path : [path, field].filter(Boolean).join('.');
  }

  /** @returns the path in the answer that an expression reads, or undefined if it is not just one */
  pathOf(given: Tree | undefined, depth = 0): string | undefined {
    const tree = unwrap(given);
    if (tree === undefined || depth > 20) return undefined;
    const again = (each: Tree | undefined): string | undefined => this.pathOf(each, depth + 1);
    if (tree.type === 'Identifier') return this.variables.get(nameOf(tree)) ?? again(this.constants.get(nameOf(tree)));
    if (tree.type === 'LogicalExpression')
      return tree['operator'] === '&&' ? again(get(tree, 'right')) : again(get(tree, 'left'));
    if (tree.type === 'ConditionalExpression') return again(get(tree, 'consequent')) ?? again(get(tree, 'alternate'));
    if (tree.type === 'MemberExpression') {
      const path = again(get(tree, 'object'));
      if (path === undefined || tree['computed'] === true) return path;
      return this.under(path, nameOf(get(tree, 'property')));
    }
    if (tree.type !== 'CallExpression') return undefined;
    const callee = unwrap(get(tree, 'callee'));
    const method = nameOf(get(callee, 'property'));
    if (callee?.type !== 'MemberExpression' || !/^(flatMap|map|filter|find|at|slice|flat|toSorted)$/.test(method))
      return undefined;
    const path = again(get(callee, 'object'));
    const [callback] = listOf(tree, 'arguments');
    if (!method.endsWith('ap') || !isFunction(callback)) return path;
    this.bind(listOf(callback, 'params')[0], path);
    return again(get(callback, 'body'));
  }

  property(object: Tree, name: string): Tree | undefined {
    return listOf(object, 'properties').find((each) => nameOf(get(each, 'key')) === name);
  }

  /** @returns the property of the returned order, or undefined if the draft leaves it out */
  find(field: string): Tree | undefined {
    let found: Tree | undefined;
    let within: Tree = this.order;
    for (const name of field.split('.')) {
      const objects = all(within).filter(({ type }) => type === 'ObjectExpression');
      found = objects.map((each) => this.property(each, name)).find((each) => each !== undefined);
      const value = get(found, 'value');
      if (value === undefined) return undefined;
      within = value;
    }
    return found;
  }

  /** @returns the paths that an expression reads, and of the constants in it. What a function reads is not counted. */
  reads(given: Tree, depth = 0): string[] {
    const tree = unwrap(given) ?? given;
    if (depth > 30 || tree.type === 'TSTypeAnnotation') return [];
    const path = ['Identifier', 'MemberExpression', 'CallExpression'].includes(tree.type)
      ? this.pathOf(tree)
      : undefined;
    if (path !== undefined && tree.type !== 'CallExpression') return [path];
    const constant = tree.type === 'Identifier' ? this.constants.get(nameOf(tree)) : undefined;
    if (constant !== undefined) return isFunction(constant) ? [] : this.reads(constant, depth + 1);
    if (tree.type === 'Property') return get(tree, 'value') ? this.reads(get(tree, 'value') as Tree, depth + 1) : [];
    if (tree.type === 'CallExpression') {
      const callee = unwrap(get(tree, 'callee'));
      const object = callee?.type === 'MemberExpression' ? get(callee, 'object') : undefined;
      const parts = [...(object ? [object] : []), ...listOf(tree, 'arguments')];
      return parts.flatMap((each) => this.reads(each, depth + 1));
    }
    return childrenOf(tree).flatMap((each) => this.reads(each, depth + 1));
  }

  /** @returns the functions that are called in an expression, and in the draft's own functions that it calls */
  calls(tree: Tree, depth = 0): string[] {
    if (depth > 5) return [];
    const named = all(tree)
      .filter(({ type }) => type === 'Identifier')
      .map(nameOf);
    const own = named.flatMap((name) => this.constants.get(name) ?? []).filter((each) => each !== tree);
    return [...named, ...own.flatMap((each) => this.calls(each, depth + 1))];
  }

  /** @returns the TODOs on the lines of an expression and in the comments above it, and those of the constants in it */
  todos(tree: Tree, depth = 0): string {
    const first = this.text.slice(0, tree.start).split('\n').length - 1;
    const last = this.text.slice(0, tree.end).split('\n').length - 1;
    const above: string[] = [];
    for (let nth = first - 1; /^\s*\/\//.test(this.lines[nth] ?? ''); nth -= 1) above.unshift(this.lines[nth] ?? '');
    // A line that names everything helps nobody.
    const near = [...above, ...this.lines.slice(first, last + 1)].filter(({ length }) => length <= LIMITS.characters);
    const own = near.flatMap((line) => /\/\/.*\bTODO\b.*/.exec(line)?.[0] ?? []);
    const names = all(tree)
      .filter(({ type }) => type === 'Identifier')
      .map(nameOf);
    const constants =
      depth > 3 ? [] : names.filter((name) => name !== 'order').flatMap((name) => this.constants.get(name) ?? []);
    const theirs = constants.filter((each) => each !== tree && !(each.start <= tree.start && each.end >= tree.end));
    return [...own, ...theirs.map((each) => this.todos(each, depth + 1))].join('\n');
  }
}

/** Takes away what TypeScript adds, and parentheses. */
function unwrap(tree: Tree | undefined): Tree | undefined {
  const isWrapped = /^(ChainExpression|ParenthesizedExpression|TS\w+Expression|BlockStatement|ReturnStatement)$/;
  if (tree === undefined || !isWrapped.test(tree.type)) return tree;
  if (tree.type === 'BlockStatement')
    return unwrap(listOf(tree, 'body').find(({ type }) => type === 'ReturnStatement'));
  return unwrap(get(tree, 'expression') ?? get(tree, 'argument'));
}

/** @returns the last word of a path that says what it is: `total` of `total.gross.amount` */
const wordOf = (path: string): string => path.split('.').findLast((name) => !AMOUNT.has(name)) ?? path;
const mentions = (text: string, word: string): boolean => new RegExp(`(^|\\W)${word}(\\W|$)`).test(text);

/** True if the TODOs name the end of a right path, or what it is a part of. The list of items says nothing of a part. */
const mentionsAny = (todos: string, { field, right }: Row): boolean =>
  right
    .flatMap((set) => set.split(/[ |]/))
    .flatMap((path) => path.split('.').slice(field.startsWith('items.') ? 1 : 0))
    .some((word) => word !== '' && !AMOUNT.has(word) && mentions(todos, word));

/** True if the TODOs name the right path, so that its reader can choose it. */
function isNamed(todos: string, right: readonly string[], read: readonly string[]): boolean {
  return right.some((set) =>
    set.split(/[ |]/).every((path) => {
      // "id" alone names nothing.
      if (path.endsWith('.id')) return mentions(todos, path.split('.').at(-2) ?? '');
      const twin = read.find((each) => each !== path && wordOf(each) === wordOf(path));
      const parts = path.split('.').filter((name) => !twin?.split('.').includes(name));
      return mentions(todos, wordOf(path)) && (twin === undefined || parts.some((part) => mentions(todos, part)));
    }),
  );
}

/** A field that the draft leaves out. A TODO for what would hold it, such as for all modifiers, may name it. */
function judgeMissing(draft: Draft, row: Row): Judged {
  const { field, right, isOpen = false } = row;
  const names = field.split('|')[0]?.split('.') ?? [];
  const parents = names.slice(1).map((_, nth) => draft.find(names.slice(0, nth + 1).join('.')));
  const parent = parents.findLast((each) => each !== undefined);
  const todos = parent === undefined ? '' : draft.todos(parent);
  const isHeld =
    parents.at(-1) === undefined || !all(parents.at(-1) as Tree).some(({ type }) => type === 'ObjectExpression');
  const isTodo = isHeld && todos !== '' && (isOpen || right.length === 0 || mentionsAny(todos, row));
  return {
    field,
    verdict: right.includes('') ? 'right' : isTodo ? 'TODO' : 'wrong',
    drafted: `missing ${todos}`.trim(),
  };
}

function judgeRow(draft: Draft, row: Row, root: string): Judged {
  const property = row.field.split('|').flatMap((field) => draft.find(field) ?? [])[0];
  const value = get(property, 'value');
  const mayLack = row.right.includes('');
  if (property === undefined || value === undefined) return judgeMissing(draft, row);
  const relative = (path: string): string =>
    (path === root ? '' : path.startsWith(`${root}.`) ? path.slice(root.length + 1) : path).replace(
      /\.?__typename$/,
      '',
    );
  const right = row.right.filter((set) => set !== '');
  const known = [...right.flatMap((set) => set.split(/[ |]/)), ...(row.also ?? [])];
  const read = [...new Set(draft.reads(value).map(relative))].filter((path) => path !== '');
  const ends = read.filter((path) => !known.some((each) => each.startsWith(`${path}.`)) && !row.also?.includes(path));
  const todos = draft.todos(property);
  const isRead = right.some((set) =>
    set.includes('|')
      ? ends.length > 0 && ends.every((path) => set.split('|').includes(path))
      : ends.toSorted().join(' ') === set.split(' ').toSorted().join(' '),
  );
  const isNothing = mayLack && ends.length === 0;
  const hasUnits = row.units === undefined || ends.length === 0 || fitsUnits(draft, value, row.units, todos);
  const drafted = draft.text.slice(value.start, value.end).replaceAll(/\s+/g, ' ');
  if ((isRead || isNothing) && hasUnits) return { field: row.field, verdict: 'right', drafted };
  const isBlank = todos !== '' && ends.length === 0;
  const isOpen = isBlank && (right.length === 0 || row.isOpen || mentionsAny(todos, row));
  const isTodo = isOpen || isNamed(todos, right, ends);
  return { field: row.field, verdict: isTodo && hasUnits ? 'TODO' : 'wrong', drafted: `${drafted} ${todos}`.trim() };
}

function fitsUnits(draft: Draft, value: Tree, units: NonNullable<Row['units']>, todos: string): boolean {
  const calls = draft.calls(value);
  const isWhole = calls.includes('minorUnits') || calls.includes('fromHundredths');
  const isDecimal = calls.includes('toMinorUnits');
  return (
    /minor ?units|hundredths|cents|decimal/i.test(todos) ||
    (units === 'whole' ? isWhole && !isDecimal : isDecimal && !isWhole)
  );
}

/** Fields that no ticket needs: people who are not the customer, and what of the customer is nobody's business. */
const PRIVATE =
  /staff|admin|manager|driver|birth|gender|\broles?\b|log_?in|password|tax_?id|client_?ip|billing|histor(y|ies)|\bevents?\b|timeline|approvals?|\bcustomers\b|\borders\b|(home|default)Address|^addresses|marketing|consent|survey|locale/i;
/** Only the customer, the order and the address to which it goes have these. */
const PERSONAL = /(^|\.)(\w*(mail|phone)\w*|mobile|(first|last|given|family|display|nick|full)name)$/i;

/** @param path from the order. @param customer the path of the person who ordered */
function isPrivate(path: string, customer: string): boolean {
  const isOfCustomer = path.startsWith(`${customer}.`);
  const rest = isOfCustomer ? path.slice(customer.length + 1) : path;
  const isElsewhere = rest.includes('.') && !/address|destination|shipping/i.test(rest);
  return PRIVATE.test(rest) || (PERSONAL.test(rest) && isElsewhere);
}

/**
 * Judges one draft.
 * @returns a verdict for each row, and what is wrong with the draft as a whole
 */
export function judgeDraft(schema: GraphQLSchema, text: string, table: Table): { rows: Judged[]; faults: string[] } {
  const source = /export const query = `([^`]*)`/.exec(text)?.[1];
  if (source === undefined) return { rows: [], faults: ['it has no query'] };
  const query = parse(source);
  const lines = text.trimEnd().split('\n');
  const longest = Math.max(...lines.map(({ length }) => length));
  const { values, entries } = queriedOf(schema, query);
  const secret = values
    .map((path) => path.replace(`${table.root}.`, ''))
    .filter((path) => isPrivate(path, table.customer));
  const counts = [...entries].filter(([, count]) => count > LIMITS.valuesOfEntry);
  const outside = values.length - [...entries.values()].reduce((sum, count) => sum + count, 0);
  const faults = [
    ...validate(schema, query).map(({ message }) => message),
    ...(lines.length > LIMITS.lines ? [`${lines.length} lines`] : []),
    ...(longest > LIMITS.characters ? [`a line of ${longest} characters`] : []),
    ...(outside > LIMITS.values ? [`${outside} values outside lists`] : []),
    ...counts.map(([path, count]) => `${count} values of an entry of ${path}`),
    ...secret.map((path) => `nobody needs ${path}`),
    ...deprecatedIn(schema, query).map((path) => `${path} is deprecated`),
  ];
  const draft = new Draft(text, query);
  return { rows: table.rows.map((row) => judgeRow(draft, row, table.root)), faults };
}

/** @returns the paths of the deprecated fields that are queried */
export const deprecatedIn = (schema: GraphQLSchema, query: DocumentNode): string[] =>
  queriedOf(schema, query).deprecated;

/** @returns the paths of all queried values, how many of them are in an entry of which list, and which are deprecated */
function queriedOf(schema: GraphQLSchema, query: DocumentNode) {
  const info = new TypeInfo(schema);
  const path: { name: string; isList: boolean }[] = [];
  const values: string[] = [];
  const entries = new Map<string, number>();
  const deprecated: string[] = [];
  const visitor = visitWithTypeInfo(info, {
    [Kind.FIELD]: {
      enter({ name: { value: name } }) {
        const type = info.getType();
        path.push({ name, isList: String(type).includes('[') });
        const at = path.map((each) => each.name).filter((each) => !CONNECTION.has(each) || path.length === 1);
        if (typeof info.getFieldDef()?.deprecationReason === 'string') deprecated.push(at.join('.'));
        const isValue = !type || !isCompositeType(getNamedType(type));
        if (!isValue || name === '__typename') return;
        values.push(at.join('.'));
        const nth = path.findLastIndex(({ isList }) => isList);
        const list = path
          .slice(0, nth + 1)
          .map((each) => each.name)
          .join('.');
        if (nth >= 0) entries.set(list, (entries.get(list) ?? 0) + 1);
      },
      leave: () => void path.pop(),
    },
  });
  visit(query, visitor);
  return { values, entries, deprecated };
}

/** The project's folder. */
export const HERE = fileURLToPath(new URL('../../', import.meta.url));

/**
 * Checks the types of drafts. A line with a TODO may be wrong: it says that something is to be filled in.
 * @param drafts texts by name
 * @returns the errors on other lines
 */
export async function typeErrorsOf(drafts: Record<string, string>): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'drafts-'));
  try {
    for (const [name, text] of Object.entries(drafts)) await writeFile(join(folder, `${name}.ts`), text);
    const kit = { 'expediter-platform': [join(HERE, 'src/platform-kit.ts')] };
    const options = {
      noEmit: true,
      rewriteRelativeImportExtensions: false,
      allowImportingTsExtensions: true,
      incremental: false,
      skipLibCheck: true,
      paths: kit,
      typeRoots: [join(HERE, 'node_modules/@types')],
    };
    const config = {
      extends: join(HERE, 'tsconfig.json'),
      compilerOptions: options,
      include: [],
      files: Object.keys(drafts).map((name) => `${name}.ts`),
    };
    await writeFile(join(folder, 'package.json'), '{"type": "module"}');
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(config));
    const { out } = await runProgram(
      process.execPath,
      [join(HERE, 'node_modules/typescript/bin/tsc'), '-p', folder, '--pretty', 'false'],
      {},
    );
    // The lines that explain an error are indented.
    return out.split(/\n(?! )/).filter((error) => {
      const [, name, nth] = /([\w-]+)\.ts\((\d+),\d+\): error/.exec(error) ?? [];
      return error.includes('error TS') && !drafts[name ?? '']?.split('\n')[Number(nth) - 1]?.includes('TODO');
    });
  } finally {
    await rm(folder, { recursive: true });
  }
}
