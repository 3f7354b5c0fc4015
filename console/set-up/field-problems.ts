import { issueInWords } from '../../src/core/domain/issue-in-words.ts';
import { Refused } from '../call.ts';
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
    const words = inList || (/^\d+$/.test(name) ? pathInWords(id ?? '') : '');
    const subject = words.charAt(0).toUpperCase() + words.slice(1) || inPlainWords(rest) || labelOf(name);
    const named = { ...issue, path: id === undefined ? path : subject };
    // An empty input is left out of the request, and then the kind that is required says nothing to people.
    const sentence = issue.received === 'missing' ? `${named.path} is missing.` : `${issueInWords(named)}.`;
    if (id === undefined) others.push(sentence);
    else byField[id] = [byField[id], sentence].filter(Boolean).join(' ');
  }
  return { byField, others };
}

/** What the service refused, by input. @throws the error, if it is about no input */
export function refusedFields(error: unknown, ids: readonly string[]): FieldProblems {
  const issues = error instanceof Refused ? error.issues : [];
  const { byField, others } = problemsOf(issues, ids);
  if (Object.keys(byField).length > 0) return byField;
  throw issues.length === 0 ? error : new Error(others.join(' '));
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
      const path = id.slice(prefix.length);
      const name = (Object.hasOwn(after, path) ? path : path.split('.')[0]) as keyof Draft;
      return !id.startsWith(prefix) || before[name] === after[name];
    }),
  );
}
