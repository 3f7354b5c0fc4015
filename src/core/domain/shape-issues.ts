import { z } from 'zod';
import { CauseText, toCauseText } from './cause-text.ts';

/** The most issues of one payload, which may be a list of thousands. */
const ISSUES_MAX = 10;

const KINDS = ['missing', 'null', 'boolean', 'number', 'string', 'array', 'object', 'other'] as const;

/** A field with a wrong shape, without its value, which may be a member's. */
export const ShapeIssue = z.object({
  path: CauseText.meta({ description: '`order.items.0.name`; empty for the whole.' }),
  received: z.enum(KINDS).meta({ description: 'The kind of value that is there.' }),
  expected: CauseText.exactOptional().meta({ description: 'The kind that should be, where it is of the wrong one.' }),
  says: CauseText.exactOptional().meta({ description: 'What else is wrong with it, in words that follow its name.' }),
});
export type ShapeIssue = z.infer<typeof ShapeIssue>;

/** Lists what is wrong with a value. @param error of a parse with `reportInput`, which has the kinds */
export function shapeIssues({ issues }: Pick<z.ZodError, 'issues'>): ShapeIssue[] {
  return issues.slice(0, ISSUES_MAX).map((issue) => {
    const about = { path: toCauseText(issue.path.join('.')), received: kindOf(inputOf(issue)) };
    return issue.code === 'invalid_type'
      ? { ...about, expected: toCauseText(issue.expected) }
      : { ...about, says: toCauseText(inWords(issue)) };
  });
}

function inWords(issue: z.core.$ZodIssue): string {
  const { message } = issue;
  // A schema's own message continues the field's name; zod's is a sentence.
  if (message.charAt(0) === message.charAt(0).toLowerCase()) return message;
  if (issue.code === 'too_big') return tooMuch(issue.origin, issue.maximum);
  if (issue.code === 'too_small') return tooLittle(issue.origin, issue.minimum);
  if (issue.code === 'invalid_value') return `is none of ${issue.values.join(', ')}`;
  return `is wrong: ${message}`;
}

function tooMuch(origin: string, maximum: number | bigint): string {
  if (origin === 'string') return `is longer than ${maximum} characters`;
  return origin === 'array' ? `has more than ${maximum} entries` : `is above ${maximum}`;
}

function tooLittle(origin: string, minimum: number | bigint): string {
  if (origin === 'string') return `is shorter than ${minimum} characters`;
  return origin === 'array' ? `has fewer than ${minimum} entries` : `is below ${minimum}`;
}

/** A union's issue is about the field that tells its shapes apart, and has the whole object. */
function inputOf(issue: z.core.$ZodIssue): unknown {
  if (issue.code !== 'invalid_union' || issue.discriminator === undefined) return issue.input;
  return (issue.input as Record<string, unknown> | undefined)?.[issue.discriminator];
}

function kindOf(value: unknown): ShapeIssue['received'] {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (Number.isNaN(value)) return 'other';
  return KINDS.find((kind) => kind === typeof value) ?? 'other';
}
