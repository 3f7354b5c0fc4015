import type { ShapeIssue } from './shape-issues.ts';

const KINDS = new Map([
  ['array', 'a list'],
  ['int', 'a whole number'],
  ['null', 'null'],
  ['object', 'an object'],
  ['other', 'a value that JSON lacks, such as NaN'],
  ['record', 'an object'],
  ['tuple', 'a list'],
]);

/** Describes one wrong field in a sentence without a full stop. */
export function issueInWords({ path, received, expected = '', says }: ShapeIssue): string {
  const subject = path === '' ? 'The whole value' : path;
  if (says !== undefined) return `${subject} ${says}`;
  const required = `${withArticle(expected)} is required`;
  if (received === 'missing') return `${subject} is missing; ${required}`;
  if (received === 'number' && expected === 'int') return `${subject} has a fraction; ${required}`;
  return `${subject} is ${withArticle(received)}; ${required}`;
}

function withArticle(kind: string): string {
  return KINDS.get(kind) ?? `a ${kind}`;
}
