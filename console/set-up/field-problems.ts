import { issueInWords } from '../../src/core/domain/issue-in-words.ts';
import { pathInWords } from '../../src/core/domain/path-in-words.ts';
import type { ShapeIssue } from '../wire.ts';
import { inPlainWords } from '../../src/core/domain/explain-failure.ts';
import { labelOf } from '../../src/core/domain/label-of.ts';

/** Sentences by the ids of the inputs that they are about. */
export type FieldProblems = Readonly<Record<string, string>>;

/**
 * Finds the input of each issue: the one with the longest path that contains the issue.
 * @param ids the ids of the inputs, which are paths in the request's body
 * @returns the problems by input, and the sentences of issues that belong to no input
 */
export function problemsOf(
  issues: readonly ShapeIssue[],
  ids: readonly string[],
): { byField: FieldProblems; others: string[] } {
  const byField: Record<string, string> = {};
  const others: string[] = [];
  for (const issue of issues) {
    const path = issue.path.replace(/\.$/, '');
    const id = ids
      .filter((each) => path === each || path.startsWith(`${each}.`))
      .toSorted((one, other) => other.length - one.length)[0];
    const rest = path.slice((id?.length ?? -1) + 1);
    const name = id?.split('.').at(-1) ?? '';
    const inList = /^\d/.test(rest) ? pathInWords(`${name}.${rest}`) : '';
    const subject = inList.charAt(0).toUpperCase() + inList.slice(1) || inPlainWords(rest) || labelOf(name);
    const named = { ...issue, path: id === undefined ? path : subject };
    // An empty input is left out of the request, and then the kind that is required says nothing to people.
    const sentence = issue.received === 'missing' ? `${named.path} is missing.` : `${issueInWords(named)}.`;
    if (id === undefined) others.push(sentence);
    else byField[id] = [byField[id], sentence].filter(Boolean).join(' ');
  }
  return { byField, others };
}

/** The problems that are left after some inputs were changed. */
export function withoutChanged<Draft extends object>(
  problems: FieldProblems,
  before: Draft,
  after: Draft,
  prefix = '',
): FieldProblems {
  return Object.fromEntries(
    Object.entries(problems).filter(([id]) => {
      const name = id.slice(prefix.length) as keyof Draft;
      return !id.startsWith(prefix) || before[name] === after[name];
    }),
  );
}
