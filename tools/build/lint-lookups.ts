/** The parts of oxlint's syntax tree that the rules read: https://oxc.rs/docs/guide/usage/linter/js-plugins */
type Node = {
  type: string;
  operator?: string;
  left?: Node;
  computed?: boolean;
  object?: Node;
  property?: Node;
  name?: string;
  id?: Node;
  init?: Node | null;
  /** Of an object literal. An empty one is filled by this code itself. */
  properties?: Node[];
  typeAnnotation?: Node | null;
};
type Context = {
  report(about: { node: Node; message: string }): void;
  sourceCode: { getText(node: Node): string };
};

const FIXED = ['Literal', 'PrivateIdentifier'];

/**
 * Rules for oxlint. A plain object answers for `constructor` and `__proto__` too, so a look-up by a text that somebody
 * else may have written needs a Map, or Object.hasOwn before it.
 */
export default {
  meta: { name: 'lookups' },
  rules: {
    /** Refuses `text in object`. With a literal, such as `'refused' in done`, it tells the members of a union apart. */
    'no-in-by-text': {
      create: (context: Context) => ({
        BinaryExpression(node: Node) {
          if (node.operator !== 'in' || FIXED.includes(node.left?.type ?? '')) return;
          context.report({ node, message: 'Use Object.hasOwn, or a Map: `in` also finds "constructor".' });
        },
      }),
    },
    /** Refuses `table[text]` for an object that the same file declares as a `Record<string, …>`. */
    'no-record-by-text': {
      create(context: Context) {
        const records = new Set<string | undefined>();
        const reads: Node[] = [];
        return {
          VariableDeclarator({ id, init }: Node) {
            const type = id?.typeAnnotation ? context.sourceCode.getText(id.typeAnnotation) : '';
            if (init?.properties?.length && /^:\s*(Readonly<)?Record<string\b/.test(type)) records.add(id?.name);
          },
          MemberExpression(node: Node) {
            const { computed, object, property } = node;
            if (computed && object?.type === 'Identifier' && !FIXED.includes(property?.type ?? '')) reads.push(node);
          },
          'Program:exit'() {
            for (const node of reads.filter(({ object }) => records.has(object?.name)))
              context.report({ node, message: 'Use a Map: a plain object also has a "constructor".' });
          },
        };
      },
    },
  },
};
