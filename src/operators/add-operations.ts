import { Option, type Command } from 'commander';
import type { z } from 'zod';
import { examples, LIST_LIMIT, LIST_LIMIT_MAX, PAST, print, readLimit, readPast } from '../terminal/print.ts';
import { describe } from '../terminal/failures.ts';
import { serviceOf } from '../terminal/stored-login.ts';
import { issueInWords } from '../core/domain/issue-in-words.ts';
import { shapeIssues } from '../core/domain/shape-issues.ts';
import {
  PartlyDone,
  type Ask,
  type CommandAbout,
  type CommandOption,
  type Operation,
  type Options,
} from './operation.ts';
import { NotDone } from '../core/operators/not-done.ts';
import { GROUPS } from './registry.ts';
import { inHelp, PAGE_MAX } from './requests.ts';

export function addOperations(program: Command, operations: readonly Operation[]): void {
  for (const operation of operations) {
    if (operation.command !== undefined) addCommand(program, operation, operation.command);
  }
}

function addCommand(program: Command, operation: Operation, about: CommandAbout): void {
  const path = about.name.split(' ');
  const argument = argumentOf(operation, about);
  const command = groupAt(program, path.slice(0, -1))
    .command(path.at(-1) ?? '')
    .description(about.about)
    .addHelpText('after', `${about.more ?? ''}${examples(...about.examples)}`);
  if (argument) command.argument(argument.flags, argument.about);
  for (const option of about.options ?? []) command.addOption(optionOf(option));
  command.action(async (...given: unknown[]) => {
    const [options, self] = given.slice(-2) as [Options, Command];
    const typed = { ...options, ...(argument && { [argument.field]: given[0] }) };
    const read = (await about.read?.(typed)) ?? typed;
    const requested = isOther(read) ? read : { operation, input: read };
    const thing = argument ? (given[0] as string | undefined) : undefined;
    await run(requested.operation, requested.input, about, self, thing);
  });
}

function argumentOf({ params }: Operation, { argument }: CommandAbout): CommandAbout['argument'] {
  const [field = ''] = Object.keys(params?.shape ?? {});
  const schema = params?.shape[field] as z.ZodType | undefined;
  if (argument !== undefined || schema === undefined) return argument;
  return { flags: field.endsWith('Id') ? '<id>' : `<${field}>`, about: inHelp(schema.description), field };
}

function isOther(read: object): read is { operation: Operation; input: Options } {
  return 'operation' in read;
}

export function groupAt(program: Command, path: readonly string[]): Command {
  return path.reduce((group, name, nth) => {
    const known = group.commands.find((each) => each.name() === name);
    if (known !== undefined) return known;
    const about = GROUPS[path.slice(0, nth + 1).join(' ')];
    if (about === undefined) throw new Error(`no such group of commands: ${name}`);
    return group
      .command(name)
      .description(about.about)
      .addHelpText('after', `${about.more ?? ''}${examples(...about.examples)}`);
  }, program);
}

function optionOf({ flags, about, required, choices, read, conflicts }: CommandOption): Option {
  const option = new Option(flags, about).makeOptionMandatory(required === true);
  if (choices !== undefined) option.choices(choices);
  if (conflicts !== undefined) option.conflicts(conflicts);
  if (read === 'past') {
    option.description += `: ${PAST}`;
    option.argParser((text) => readPast(text).toISOString());
  }
  if (read === 'limit') {
    option.description += `, up to ${LIST_LIMIT_MAX}`;
    option.argParser(readLimit).default(LIST_LIMIT);
  }
  if (typeof read === 'function') {
    option.argParser((text: string, before: unknown) => read(text, before as string[] | undefined));
  }
  return option;
}

/**
 * Gives a command a function that performs operations: by the API of the service that EXPEDITER_URL or a login names, or
 * in the database of DATABASE_URL.
 * @param operations those that the command may perform
 */
export async function withAsk<Result>(
  operations: readonly Operation[],
  work: (ask: Ask) => Promise<Result>,
  connections?: number,
): Promise<Result> {
  // Imported here, because a command needs only one of the two.
  const service = await serviceOf(process.env);
  if (service !== undefined) {
    const { askService } = await import('./ask-service.ts');
    return work(askService(service));
  }
  const { withAskDatabase } = await import('./ask-database.ts');
  return withAskDatabase(operations, work, connections);
}

/** Runs an operation and prints the result. The operation of a list runs once for each page. */
async function run(
  operation: Operation,
  typed: Options,
  about: CommandAbout,
  command: Command,
  thing: string | undefined,
): Promise<void> {
  if (operation.query !== undefined && 'cursor' in operation.query.shape) {
    await runPages(operation, typed, about, command);
    return;
  }
  const operations = [operation, ...(about.complete === undefined ? [] : [about.complete.by])];
  const work = async (ask: Ask): Promise<{ done: object; input: Options; stopped: string | undefined }> => {
    const whole = (await about.complete?.find(ask, typed)) ?? typed;
    if (typeof whole === 'string') throw new NotDone(404, whole);
    const read = readInput(operation, whole);
    return ask(operation, read, about.tell).then(
      (output) => ({ done: output, input: read, stopped: undefined }),
      (error: unknown) => {
        if (error instanceof PartlyDone) return { done: error.done, input: read, stopped: describe(error.cause) };
        throw nameSubject(error, thing, about.cannot);
      },
    );
  };
  const { done, input, stopped } = await withAsk(operations, work, about.connections);
  const json = {
    ...done,
    ...('dryRun' in input && { dryRun: input['dryRun'] }),
    ...(stopped !== undefined && { stopped }),
  };
  print(
    command,
    about.rows === undefined ? json : (done as Record<string, unknown>)[about.rows],
    (await operation.print?.(done, input)) ?? '',
  );
  if (stopped !== undefined)
    throw new Error(`It stopped before the end. Repeat the command to continue. The cause: ${stopped}`);
  const failed = operation.fails?.(done, input) ?? false;
  if (typeof failed === 'string') throw new Error(failed);
  if (failed) process.exitCode = 1;
}

/** Puts the id of the subject, as it was typed, before the message of a refusal. */
function nameSubject(error: unknown, thing: string | undefined, cannot: string | undefined): unknown {
  if (!(error instanceof NotDone) || thing === undefined || error.statusCode === 400) return error;
  const verb = error.statusCode === 409 && cannot !== undefined ? ` ${cannot}` : '';
  return new NotDone(error.statusCode, `${thing}${verb}: ${error.message}`);
}

async function runPages(operation: Operation, typed: Options, about: CommandAbout, command: Command): Promise<void> {
  const { after, limit, ...filter } = typed;
  const field = about.rows ?? '';
  const rows: unknown[] = [];
  let next = after as string | undefined;
  await withAsk([operation], async (ask) => {
    do {
      const input = { ...filter, cursor: next, limit: Math.min(PAGE_MAX, Number(limit) - rows.length) };
      const page = (await ask(operation, readInput(operation, input)).catch((error: unknown) => {
        if (!(error instanceof NotDone) || next === undefined) throw error;
        throw new NotDone(404, `--after: no list ends with "${next}"`);
      })) as Record<string, unknown>;
      rows.push(...(page[field] as unknown[]));
      next = (page['next'] as string | null) ?? undefined;
    } while (next !== undefined && rows.length < Number(limit));
  });
  const words = (await operation.print?.({ [field]: rows }, filter)) ?? '';
  print(command, rows, next === undefined ? words : `${words}\n\nThere may be more: --after ${next}`);
}

/** Validates the typed input with the operation's schemas. @throws NotDone */
export function readInput({ params, query, body }: Operation, typed: Options): Options {
  const names = (schema: { shape: object } | undefined): string[] => Object.keys(schema?.shape ?? {});
  const given = Object.entries(typed).filter(([, value]) => value !== undefined);
  const inPath = params?.safeParse(Object.fromEntries(given.filter(([name]) => names(params).includes(name))));
  // The message does not repeat an invalid id, because it may be a secret that was typed in the wrong place.
  if (inPath?.error !== undefined) throw new NotDone(404, `The id is not valid: ${inPath.error.issues[0]?.message}`);
  const others = given.filter(([name]) => !names(params).includes(name));
  const isInQuery = (name: string): boolean => body === undefined || names(query).includes(name);
  // A query has only texts.
  const inQuery = others
    .filter(([name]) => isInQuery(name))
    .map(([name, value]) => [name, typeof value === 'boolean' ? String(value) : value]);
  const inBody = others.filter(([name]) => query === undefined || !isInQuery(name));
  return {
    ...inPath?.data,
    ...validate(query, Object.fromEntries(inQuery)),
    ...validate(body, Object.fromEntries(inBody)),
  };
}

function validate(schema: Operation['body'], given: object): Options {
  const read = schema?.safeParse(given, { reportInput: true });
  if (read?.error === undefined) return read?.data as Options;
  const issues = shapeIssues(read.error).map(issueInWords).join('; ');
  throw new NotDone(400, issues.replace(/^cursor /, '--after '));
}
