import { z } from 'zod';
import { readMinutes } from '../cli/print.ts';
import {
  Case,
  Note,
  SnoozedUntil,
  Typed,
  addNote,
  closeCase,
  readCare,
  snooze,
  takeCase,
  type Subject,
} from '../core/operators/cases.ts';
import { NotDone, operation, type Caller, type CommandAbout, type Operation } from './operation.ts';
import { LocationParams, OrderParams, optional } from './requests.ts';

const NOBODY = 'nobody';
const NOT_OF_MEMBER = "Everybody who sees it reads the text, so do not write a member's data.";

/** The operations by which operators share work on an order or a location. */
function caseOperations(kind: 'order' | 'location'): Operation[] {
  const isOrder = kind === 'order';
  const params: z.ZodObject = isOrder ? OrderParams : LocationParams;
  const path = isOrder ? '/orders/:serviceOrderId' : '/locations/:locationId';
  const name = isOrder ? 'Order' : 'Location';
  const field = isOrder ? 'serviceOrderId' : 'locationId';
  const the = isOrder ? 'an order' : 'a location';
  const example = isOrder ? 'order-4711' : 'club-1';
  const idOf = (input: object): string => String((input as Record<string, unknown>)[field]);
  const subjectOf = (input: object): Subject =>
    isOrder ? { serviceOrderId: idOf(input) } : { locationId: idOf(input) };
  const common = { role: 'operator', of: kind, params, wakes: 'board' } as const;
  const tag = `${name}s`;
  const command = (verb: string, about: string, more: Omit<CommandAbout, 'name' | 'about' | 'argument'>) => ({
    name: `${kind} ${verb}`,
    about,
    argument: { flags: '<id>', about: `the ${kind}'s id on the platform`, field },
    ...more,
  });
  /** The audit has the holder before and after. */
  const about = async ({ pool }: Pick<Caller, 'pool'>, input: object): Promise<{ before: string }> => ({
    before: (await readCare(pool, subjectOf(input))).case?.holder ?? NOBODY,
  });

  const take = operation({
    ...common,
    id: `take${name}Case`,
    does: 'take case',
    api: {
      tag,
      route: `PUT ${path}/case`,
      summary: `Take the case of ${the}, or hand it over`,
      description: 'Other operators then see who takes care of it.',
      output: z.object({ ...params.shape, case: Case }),
      answer: 'The case.',
    },
    body: optional(
      z
        .strictObject({
          to: Typed(100).optional().meta({ description: 'The name of another person. By default you.' }),
        })
        .meta({ examples: [{}] }),
    ),
    about,
    async run({ pool, by, note }, { to, ...input }) {
      const taken = await takeCase(pool, subjectOf(input), to ?? by.name);
      if (taken === undefined) return undefined;
      note(taken.holder);
      return { [field]: idOf(input), case: taken };
    },
    print: (done, input) => `${idOf(input)}: ${done.case?.holder} takes care of it`,
    command: command('take', `take the case of ${the}, so that others see who takes care of it, or hand it over`, {
      options: [{ flags: '--to <name>', about: 'the name of the person who takes care of it; by default you' }],
      examples: [`expediter ${kind} take ${example}`, `expediter ${kind} take ${example} --to Anna`],
    }),
  });

  const close = operation({
    ...common,
    id: `close${name}Case`,
    does: 'close case',
    api: {
      tag,
      route: `POST ${path}/case/close`,
      summary: `Close the case of ${the}`,
      description: `Nobody takes care of it any more. ${NOT_OF_MEMBER}`,
      output: z.object({ ...params.shape, case: Case }),
      answer: 'The case is closed, even if nobody had it.',
    },
    body: optional(
      z
        .strictObject({ note: Typed(1_000).optional().meta({ description: 'What was done, as a note.' }) })
        .meta({ examples: [{ note: 'The restaurant has printed it again.' }] }),
    ),
    about,
    async run({ pool, by, note: after }, { note, ...input }) {
      if (!(await closeCase(pool, subjectOf(input), { by: by.name, text: note }))) return undefined;
      after(NOBODY);
      return { [field]: idOf(input), case: null };
    },
    print: (_, input) => `${idOf(input)}: the case is closed`,
    command: command('close', `close the case of ${the}`, {
      options: [{ flags: '--note <text>', about: "what was done, without a member's data" }],
      examples: [`expediter ${kind} close ${example} --note "The restaurant has printed it again."`],
    }),
  });

  const note = operation({
    ...common,
    id: `note${name}`,
    does: 'note',
    api: {
      tag,
      route: `POST ${path}/notes`,
      summary: `Write a note about ${the} for other operators`,
      description: `${NOT_OF_MEMBER} The audit does not have the text. A note is deleted after PII_RETENTION_DAYS.`,
      output: z.object({ ...params.shape, note: Note }),
      answer: 'The note.',
    },
    body: z
      .strictObject({ text: Typed(1_000).meta({ description: 'The note.' }) })
      .meta({ examples: [{ text: 'The restaurant calls back at six.' }] }),
    async run({ pool, by }, { text, ...input }) {
      const added = await addNote(pool, subjectOf(input), { by: by.name, text });
      return added && { [field]: idOf(input), note: added };
    },
    print: (_, input) => `${idOf(input)}: the note is stored`,
    command: command('note', `write a note about ${the} for other operators`, {
      options: [{ flags: '--text <text>', about: "the note, without a member's data", required: true }],
      examples: [`expediter ${kind} note ${example} --text "The restaurant calls back at six."`],
    }),
  });

  const hide = operation({
    ...common,
    id: `snooze${name}`,
    does: 'snooze',
    api: {
      tag,
      route: `POST ${path}/snooze`,
      summary: `Hide the alarm of ${the} for some time`,
      description: 'It is hidden from everybody. Nothing else changes.',
      output: z.object({ ...params.shape, snoozedUntil: SnoozedUntil }),
      answer: 'Until when it is hidden.',
    },
    body: z
      .strictObject({ minutes: z.int().min(0).max(1_440).meta({ description: '0 shows it again.' }) })
      .meta({ examples: [{ minutes: 30 }] }),
    async run({ pool, note: after }, { minutes, ...input }) {
      const done = await snooze(pool, subjectOf(input), minutes);
      if (done === undefined) return undefined;
      after(done.snoozedUntil ?? 'shown');
      return { [field]: idOf(input), ...done };
    },
    print: ({ snoozedUntil }, input) =>
      `${idOf(input)}: the alarm is ${snoozedUntil === null ? 'shown' : `hidden until ${snoozedUntil}`}`,
    command: command('snooze', `hide the alarm of ${the} from everybody for some time`, {
      options: [
        { flags: '--for <while>', about: 'such as 30m or 2h, up to 24h', read: readMinutes, conflicts: 'end' },
        { flags: '--end', about: 'show it again', conflicts: 'for' },
      ],
      examples: [`expediter ${kind} snooze ${example} --for 30m`, `expediter ${kind} snooze ${example} --end`],
      read({ for: minutes, end, ...typed }) {
        if (minutes === undefined && end !== true) throw new NotDone(400, 'Say how long: --for, or --end.');
        return { ...typed, minutes: minutes ?? 0 };
      },
    }),
  });

  return [take, close, note, hide];
}

export const CASE_OPERATIONS: readonly Operation[] = [...caseOperations('order'), ...caseOperations('location')];
