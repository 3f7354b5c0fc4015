import type { ShapeIssue } from './shape-issues.ts';

const KINDS: Readonly<Record<string, string>> = {
  array: 'a list',
  int: 'a whole number',
  null: 'null',
  object: 'an object',
  other: 'something else',
};

/** Describes one wrong field in a sentence, without its full stop. */
export function issueInWords({ path, received, expected = '', says }: ShapeIssue): string {
  const subject = path === '' ? 'The whole of it' : path;
  if (says !== undefined) return `${subject} ${says}`;
  const is = received === 'missing' ? 'missing' : withArticle(received);
  return `${subject} is ${is}; ${withArticle(expected)} is required`;
}

function withArticle(kind: string): string {
  return KINDS[kind] ?? `a ${kind}`;
}
