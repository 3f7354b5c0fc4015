import { z } from 'zod';
import { readMinutes } from '../terminal/print.ts';
import {
  Case,
  Note,
  SnoozedUntil,
  addNote,
  closeCase,
  readCare,
  snooze,
  takeCase,
  type Subject,
} from '../core/cases/cases.ts';
import { findNamed, nobodyNamed } from '../core/domain/find-named.ts';
import { Typed } from '../core/domain/typed.ts';
import { peopleForCase } from '../core/operators/people.ts';
import { operation, type Caller, type CommandAbout, type Operation } from './operation.ts';
import { NotDone } from '../core/operators/not-done.ts';
import { LocationParams, optionalFields, OrderParams } from './requests.ts';

/** What the operations about orders and those about locations do not share. */
type Kind = ReturnType<typeof kindOf>;

function kindOf(kind: 'order' | 'location', id: 'serviceOrderId' | 'locationId', params: z.ZodObject) {
  const idOf = (input: object): string => String((input as Record<string, unknown>)[id]);
  const the = kind === 'order' ? 'an order' : 'a location';
  return {
    the,
    name: kind === 'order' ? 'Order' : 'Location',
    idOf,
    subjectOf: (input: object) => ({ [id]: idOf(input) }) as Subject,
    common: (does: string) => ({ access: { role: 'operator', of: kind, does }, params, wakes: 'board' }) as const,
    reading: { access: { role: 'operator', of: kind }, params } as const,
    api: <Field extends z.ZodRawShape>(method: 'GET' | 'PUT' | 'POST', path: string, field: Field) => ({
      route: `${method} /${kind}s/:${id}/${path}` as const,
      output: z.object({ ...params.shape, ...field }),
    }),
    answer: <Field extends object>(input: object, field: Field) => ({ [id]: idOf(input), ...field }),
    command: (verb: string, about: string, options: NonNullable<CommandAbout['options']>, example: string) => ({
      name: `${kind} ${verb}`,
      about,
      options,
      examples: [`expediter ${kind} ${verb} ${kind === 'order' ? 'order-4711' : 'club-1'} ${example}`],
    }),
  };
}

const NOBODY = 'nobody';
const WRONG_NAME = { issues: [{ path: 'to', received: 'string', says: 'names nobody who may take cases here' }] };
const NO_MEMBER = "Everybody who sees it reads the text, so do not write a member's data.";

/** The audit has the holder before and after. */
const holderBefore =
  ({ subjectOf }: Kind) =>
  async ({ pool }: Pick<Caller, 'pool'>, input: object): Promise<{ before: string }> => ({
    before: (await readCare(pool, subjectOf(input))).case?.holder ?? NOBODY,
  });

const take = (kind: Kind): Operation =>
  operation({
    ...kind.common('take case'),
    id: `take${kind.name}Case`,
    api: {
      ...kind.api('PUT', 'case', { case: Case }),
      summary: `Take the case of ${kind.the}, or hand it over`,
      description:
        'Other operators then see who takes care of it, and the new holder sees who handed it over. `case/people` lists ' +
        'who can have it. Anybody else is refused.',
      answer: 'The case.',
    },
    body: optionalFields({
      to: Typed(255)
        .optional()
        .meta({ description: 'The name of another person with the role operator there. By default you.' }),
    }).meta({ examples: [{ to: 'Anna' }] }),
    about: holderBefore(kind),
    async run({ pool, by, note }, { to = by.name, ...input }) {
      const subject = kind.subjectOf(input);
      const people = to === by.name ? [to] : await peopleForCase(pool, subject);
      if (people === undefined) return undefined;
      const holder = findNamed(to, people);
      if (holder === undefined) throw new NotDone(400, nobodyNamed(to, people), WRONG_NAME);
      const taken = await takeCase(pool, subject, holder, holder === by.name ? undefined : by.name);
      if (taken === undefined) return undefined;
      note(taken.holder);
      return kind.answer(input, { case: taken });
    },
    print: (done, input) => `${kind.idOf(input)}: ${done.case?.holder} takes care of it`,
    command: kind.command(
      'take',
      `take the case of ${kind.the}, so that others see who takes care of it, or hand it over`,
      [{ flags: '--to <name>', about: 'the name of a person with the role operator there; by default you' }],
      '--to Anna',
    ),
  });

const people = (kind: Kind): Operation =>
  operation({
    ...kind.reading,
    id: `list${kind.name}People`,
    api: {
      ...kind.api('GET', 'case/people', { people: z.array(z.string()) }),
      summary: `Who can be given the case of ${kind.the}`,
      description:
        'Everybody with the role operator there: holders of named tokens, addresses with a grant, and members of groups ' +
        'who signed in within a week. The names are those of the audit.',
      answer: 'The names, sorted.',
    },
    async run({ pool }, input) {
      const found = await peopleForCase(pool, kind.subjectOf(input));
      return found && kind.answer(input, { people: found });
    },
  });

const close = (kind: Kind): Operation =>
  operation({
    ...kind.common('close case'),
    id: `close${kind.name}Case`,
    api: {
      ...kind.api('POST', 'case/close', { case: Case }),
      summary: `Close the case of ${kind.the}`,
      description: `Nobody takes care of it any more. ${NO_MEMBER}`,
      answer: 'The case is closed, even if nobody had it.',
    },
    body: optionalFields({ note: Typed(1_000).optional().meta({ description: 'What was done, as a note.' }) }).meta({
      examples: [{ note: 'The restaurant has printed it again.' }],
    }),
    about: holderBefore(kind),
    async run({ pool, by, note: after }, { note, ...input }) {
      if (!(await closeCase(pool, kind.subjectOf(input), { by: by.name, text: note }))) return undefined;
      after(NOBODY);
      return kind.answer(input, { case: null });
    },
    print: (_, input) => `${kind.idOf(input)}: the case is closed`,
    command: kind.command(
      'close',
      `close the case of ${kind.the}`,
      [{ flags: '--note <text>', about: "what was done, without a member's data" }],
      '--note "The restaurant has printed it again."',
    ),
  });

const note = (kind: Kind): Operation =>
  operation({
    ...kind.common('note'),
    id: `note${kind.name}`,
    api: {
      ...kind.api('POST', 'notes', { note: Note }),
      summary: `Write a note about ${kind.the} for other operators`,
      description: `${NO_MEMBER} The audit does not have it. It is deleted after \`PII_RETENTION_DAYS\`.`,
      answer: 'The note.',
    },
    body: z
      .strictObject({ text: Typed(1_000).meta({ description: 'The note.' }) })
      .meta({ examples: [{ text: 'The restaurant calls back at six.' }] }),
    async run({ pool, by }, { text, ...input }) {
      const added = await addNote(pool, kind.subjectOf(input), { by: by.name, text });
      return added && kind.answer(input, { note: added });
    },
    print: (_, input) => `${kind.idOf(input)}: the note is stored`,
    command: kind.command(
      'note',
      `write a note about ${kind.the} for other operators`,
      [{ flags: '--text <text>', about: "the note, without a member's data", required: true }],
      '--text "The restaurant calls back at six."',
    ),
  });

const hide = (kind: Kind): Operation =>
  operation({
    ...kind.common('snooze'),
    id: `snooze${kind.name}`,
    api: {
      ...kind.api('POST', 'snooze', { snoozedUntil: SnoozedUntil }),
      summary: `Hide the alarm of ${kind.the} for some time`,
      description: 'It is hidden from everybody. Nothing else changes.',
      answer: 'Until when it is hidden.',
    },
    body: z
      .strictObject({ minutes: z.int().min(0).max(1_440).meta({ description: '0 shows it again.' }) })
      .meta({ examples: [{ minutes: 30 }] }),
    async run({ pool, note: after }, { minutes, ...input }) {
      const done = await snooze(pool, kind.subjectOf(input), minutes);
      if (done === undefined) return undefined;
      after(done.snoozedUntil ?? 'shown');
      return kind.answer(input, done);
    },
    print: ({ snoozedUntil }, input) =>
      `${kind.idOf(input)}: the alarm is ${snoozedUntil === null ? 'shown' : `hidden until ${snoozedUntil}`}`,
    command: {
      ...kind.command(
        'snooze',
        `hide the alarm of ${kind.the} from everybody for some time`,
        [
          { flags: '--for <duration>', about: 'such as 30m or 2h, up to 24h', read: readMinutes, conflicts: 'end' },
          { flags: '--end', about: 'show it again', conflicts: 'for' },
        ],
        '--for 30m',
      ),
      read({ for: minutes, end, ...typed }) {
        if (minutes === undefined && end !== true) throw new NotDone(400, 'Say how long: --for, or --end.');
        return { ...typed, minutes: minutes ?? 0 };
      },
    },
  });

export const CASE_OPERATIONS: readonly Operation[] = [
  kindOf('order', 'serviceOrderId', OrderParams),
  kindOf('location', 'locationId', LocationParams),
].flatMap((kind) => [take(kind), people(kind), close(kind), note(kind), hide(kind)]);
