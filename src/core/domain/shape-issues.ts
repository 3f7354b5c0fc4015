import { z } from 'zod';
import { CauseText, toCauseText } from './cause-text.ts';

/** The most issues listed for one payload. A payload may be a list of thousands. */
const ISSUES_MAX = 10;

const KINDS = ['missing', 'null', 'boolean', 'number', 'string', 'array', 'object', 'other'] as const;

/** A field with a wrong shape. Its value is not stored, because it may be a member's data. */
export const ShapeIssue = z.object({
  path: CauseText.meta({ description: '`order.items.0.name`; empty for the whole; `…` for those not listed.' }),
  received: z.enum(KINDS).meta({ description: 'The kind of the value; `other` is a value that JSON cannot express.' }),
  expected: CauseText.exactOptional().meta({ description: 'The required kind, if the value is of another kind.' }),
  says: CauseText.exactOptional().meta({ description: 'What else is wrong, as words that follow the path.' }),
});
export type ShapeIssue = z.infer<typeof ShapeIssue>;

/** Lists the first issue of each field, and counts the rest. @param error of a parse with `reportInput`, for the kinds */
export function shapeIssues({ issues }: Pick<z.ZodError, 'issues'>): ShapeIssue[] {
  const firsts = new Map<string, z.core.$ZodIssue>();
  for (const issue of issues) {
    const path = issue.path.join('.');
    if (!firsts.has(path)) firsts.set(path, issue);
  }
  const listed = [...firsts].slice(0, ISSUES_MAX).map(([path, issue]): ShapeIssue => {
    const received = kindOf(inputOf(issue));
    const about = { path: toCauseText(path), received };
    return issue.code === 'invalid_type' && !(issue.expected === 'int' && isOurs(issue.message))
      ? { ...about, expected: toCauseText(issue.expected) }
      : { ...about, says: toCauseText(inWords(issue, received)) };
  });
  const more = firsts.size - listed.length;
  return more === 0 ? listed : [...listed, { path: '…', received: 'other', says: `and ${more} more` }];
}

function inWords(issue: z.core.$ZodIssue, received: ShapeIssue['received']): string {
  const { message } = issue;
  if (isOurs(message)) return message;
  if (issue.code === 'too_big') return tooMuch(issue);
  if (issue.code === 'too_small') return tooLittle(issue);
  if (issue.code === 'invalid_value') return notAmong(issue.values.map(String), received);
  if (issue.code === 'unrecognized_keys') return `has no field ${issue.keys.join(', ')}`;
  return `is wrong: ${message}`;
}

/** A message of our schemas continues a sentence that begins with the field's name. A message of zod is a sentence. */
function isOurs(message: string): boolean {
  return message.charAt(0) === message.charAt(0).toLowerCase();
}

function tooMuch({ origin, maximum, inclusive }: z.core.$ZodIssueTooBig): string {
  if (origin === 'string') return `is longer than ${count(maximum, 'character', 'characters')}`;
  if (origin === 'array') return `has more than ${count(maximum, 'entry', 'entries')}`;
  return inclusive === false ? `is not below ${maximum}` : `is above ${maximum}`;
}

function tooLittle({ origin, minimum, inclusive }: z.core.$ZodIssueTooSmall): string {
  if ((origin === 'string' || origin === 'array') && minimum === 1) return 'is empty';
  if (origin === 'string') return `is shorter than ${minimum} characters`;
  if (origin === 'array') return `has fewer than ${minimum} entries`;
  return inclusive === false ? `is not above ${minimum}` : `is below ${minimum}`;
}

function notAmong(values: string[], received: ShapeIssue['received']): string {
  if (received === 'missing') return `is missing; ${values.join(' or ')} is required`;
  return values.length < 3 ? `must be ${values.join(' or ')}` : `must be one of ${values.join(', ')}`;
}

function count(number: number | bigint, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}

/** The issue of a union is about the discriminator, but its input is the whole object. */
function inputOf(issue: z.core.$ZodIssue): unknown {
  if (issue.code !== 'invalid_union' || issue.discriminator === undefined) return issue.input;
  return (issue.input as Record<string, unknown> | undefined)?.[issue.discriminator];
}

function kindOf(value: unknown): ShapeIssue['received'] {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number' && !Number.isFinite(value)) return 'other';
  return KINDS.find((kind) => kind === typeof value) ?? 'other';
}
