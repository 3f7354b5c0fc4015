import { inspect } from 'node:util';
import type { Command } from 'commander';
import { z } from 'zod';
import { readConfigOf } from '../server/config.ts';
import { issueInWords } from '../core/domain/issue-in-words.ts';
import { CanonicalOrder } from '../core/domain/order.ts';
import type { PlatformError } from '../core/domain/order-module.ts';
import { wordOf } from '../core/domain/member-text.ts';
import type { CodedError } from '../core/placements/fetch-order-data.ts';
import type { CheckedOrder, ShapeLine } from '../diagnostics/check-order.ts';
import { examples, print, table } from './print.ts';
import { NotDone } from '../operators/operation.ts';
import { loadProviders } from './settings-rules.ts';
import { terminalText } from '../observe/terminal-text.ts';

const SUMS =
  'Sums that do not add up. This is correct if they include a fee for which we have no field. Otherwise check the mapper:';
const REFUSALS = 'These integrations would refuse this order at every location, with any settings:';
const TO_REVEAL = 'Add --reveal to print the whole error. It may quote the order.';

export function addPlatformCommands(program: Command): void {
  const platform = program
    .command('platform')
    .description('check how orders of the ordering platform are read')
    .addHelpText('after', examples('expediter platform check order-4711', 'expediter platform schema'));

  platform
    .command('check')
    .description(
      'fetch one order and print how the service reads it: the canonical order or its errors, and the ' +
        'shape of the answer. Stores and orders nothing. Exits 1 if the order could not be placed',
    )
    .argument('<order>', 'its id on the ordering platform')
    .option(
      '--reveal',
      'also print member data, and the full errors of the platform and the mapper, which may quote member data',
    )
    .addHelpText(
      'after',
      `
If the order can be placed, it also says which sums do not add up, and which integrations would refuse the order with
any settings. It prints only the codes of the platform's errors. Exits 3 if the platform has no such order.
Needs ORDER_API_URL, ORDER_API_TOKEN and ORDER_MODULE or ORDER_QUERY_FILE like the service, but no database.
${examples('expediter platform check order-4711', 'expediter platform check order-4711 --reveal')}`,
    )
    .action(async (orderId: string, { reveal }: { reveal?: true }, command: Command) => {
      const env = readConfigOf(
        process.env,
        'ORDER_API_URL',
        'ORDER_API_TOKEN',
        'ORDER_MODULE',
        'ORDER_QUERY_FILE',
        'PROVIDER_MODULES',
      );
      // Imported here, because no other command needs these modules.
      const { loadOrderModule } = await import('../platform/load-order-module.ts');
      const { checkOrder, maskOrder } = await import('../diagnostics/check-order.ts');
      const module = await loadOrderModule(env);
      const registry = await loadProviders(env.PROVIDER_MODULES);
      const warn = (problem: string): void => void process.stderr.write(`warning: ${terminalText(problem)}\n`);
      const platform = { url: env.ORDER_API_URL, token: env.ORDER_API_TOKEN, module };
      const checked = await checkOrder({ ...platform, registry, warn }, orderId);
      if (checked.state === 'missing') throw new NotDone(404, 'The ordering platform has no order with this id.');
      if (checked.state === 'failed') {
        process.exitCode = 1;
        const { thrown, errors, ...rest } = checked;
        const failed = {
          ...rest,
          ...(errors !== undefined && { errors: errors.map((each) => describeError(each, reveal === true)) }),
          ...(reveal === true && 'thrown' in checked && { thrown: inFull(thrown) }),
        };
        print(command, failed, describeFailed(failed));
      } else {
        const read = { ...checked, order: reveal === true ? checked.order : maskOrder(checked.order) };
        print(command, read, describeRead(read));
      }
    });

  platform
    .command('schema')
    .description('print the JSON Schema of the canonical order, which a mapper returns')
    .addHelpText('after', examples('expediter platform schema'))
    .action((_options: object, command: Command) => {
      const schema = z.toJSONSchema(CanonicalOrder, { io: 'input' });
      print(command, schema, JSON.stringify(schema, undefined, 2));
    });
}

type Read = Omit<Extract<CheckedOrder, { state: 'ok' }>, 'order'> & { order: unknown };
type Failed = Omit<Extract<CheckedOrder, { state: 'failed' }>, 'errors' | 'thrown'> & {
  errors?: ShownError[];
  thrown?: string;
};

function describeRead({ order, leftOut, remarks, refusals, shape }: Read): string {
  const without = leftOut.map(({ code, path }) => ({ 'left out': path, because: code }));
  return inParts(
    'It can be placed, as this order:',
    JSON.stringify(order, undefined, 2),
    without.length > 0 && table(without, ''),
    remarks.length > 0 && SUMS,
    remarks.map(({ path, says }) => `${path} ${says}`).join('\n'),
    refusals.length > 0 && REFUSALS,
    refusals.length > 0 && table(refusals, ''),
    describeAnswer(shape),
  );
}

function describeFailed({ problem, cause, errors = [], shape = [], thrown }: Failed): string {
  const faults = cause.code === 'order_unreadable' ? cause.issues.map(issueInWords) : [];
  return inParts(
    faults.length > 0
      ? 'It cannot be placed. Errors in the order that was made from the answer:'
      : `It cannot be placed: ${problem}`,
    faults.join('\n'),
    errors.length > 0 && describeErrors(errors),
    cause.code === 'order_mapper_threw' && (thrown ?? TO_REVEAL),
    cause.code === 'platform_failing' && 'If the query is wrong, this shows more: expediter doctor --only platform',
    shape.length > 0 && describeAnswer(shape),
  );
}

/** An error of the platform. A code is null unless it is one word, because a longer text may quote the member. */
type ShownError = { code: string | null; judgedBy: string | null; error?: PlatformError };

function describeError({ error, code }: CodedError, isRevealed: boolean): ShownError {
  const own = error.extensions?.['code'];
  return { code: wordOf(own) ?? null, judgedBy: wordOf(code) ?? null, ...(isRevealed && { error }) };
}

function describeErrors(errors: readonly ShownError[]): string {
  const codes = table(
    errors.map(({ code, judgedBy }) => ({ 'extensions.code': code ?? '(none)', 'judged by': judgedBy ?? '(none)' })),
    '',
  );
  const whole = errors.flatMap(({ error }) => (error === undefined ? [] : [inFull(error)]));
  const more =
    whole.length > 0 ? whole.join('\n') : 'Add --reveal to print the whole errors. They may quote the member.';
  return `The errors in the platform's answer:\n\n${codes}\n\n${more}`;
}

/** Formats a mapper's error with its stack, or an error of the platform. */
function inFull(thrown: unknown): string {
  return inspect(thrown, { depth: 6 });
}

function describeAnswer(shape: readonly ShapeLine[]): string {
  return `The shape of the platform's answer, without values:\n\n${table(
    shape.map(({ path, kind }) => ({ field: path, 'what is there': kind })),
    'nothing',
  )}`;
}

function inParts(...parts: (string | false | undefined)[]): string {
  return parts.filter(Boolean).join('\n\n');
}
