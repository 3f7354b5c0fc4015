import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { inspect } from 'node:util';
import type { Command } from 'commander';
import { z } from 'zod';
import { readConfigOf, tokenReader } from '../config/config.ts';
import { issueInWords } from '../core/domain/issue-in-words.ts';
import { minorDigits, toDecimal } from '../core/domain/money.ts';
import { CanonicalOrder } from '../core/domain/order.ts';
import type { PlatformError } from '../core/domain/order-module.ts';
import { wordOf } from '../core/domain/member-text.ts';
import type { CodedError } from '../core/placements/ask-platform.ts';
import type { RequestOfModule } from '../core/placements/fetch-order.ts';
import type { CheckedOrder, ShapeLine, checkOrder } from '../diagnostics/check-order.ts';
import { onChange } from './on-change.ts';
import { asTyped, examples, print, sections, table, tableOf, titled } from '../terminal/print.ts';
import { NotDone } from '../core/operators/not-done.ts';
import { loadProviders } from '../terminal/settings-rules.ts';
import { printError } from '../observe/terminal-text.ts';

const DOUBTS = 'DOUBTFUL. Check these fields in the mapper:';
const DEFAULT_QUERY = 'ORDER_MODULE is unset, so the default query was sent.';
const WITH_SHAPE = 'Add --shape to see the fields of the answer.';
const ADDS_UP = 'The amounts of this order add up to its total as drafted, so they have no TODO for other candidates.';
const ADDS_NOT_UP =
  'No amounts of this order add up to its total: compare the lines of money with what the member paid. A fee or a ' +
  'discount may be in a list that the query lacks.';
const ALL_FREE = 'The items of this order are free, so its amounts decide nothing. Better take another order.';
const REFUSALS = 'These integrations would refuse this order at every location, with any settings:';
/** The codes that have a meaning, see `ErrorCode`. */
const KNOWN = new Set<string | null>(
  'NOT_FOUND UNAUTHENTICATED FORBIDDEN BAD_USER_INPUT INTERNAL_SERVER_ERROR'.split(' '),
);
const UNKNOWN_CODE =
  'Expediter does not know this code, so it sends the query again until the deadline. If the code means that there is ' +
  'no such order or that the token is wrong, translate it by the function errorCode of the module.';
const TO_REVEAL = 'Add --reveal to print the whole error. It may quote the order.';

export function addPlatformCommands(program: Command): void {
  const platform = program
    .command('platform')
    .description('check how orders of the ordering platform are read')
    .addHelpText('after', examples('expediter platform init', 'expediter platform check order-4711'));

  addCheck(platform);
  addInit(platform);
  platform
    .command('schema')
    .description('print the JSON Schema of the canonical order, which a mapper returns')
    .addHelpText('after', examples('expediter platform schema'))
    .action((_options: object, command: Command) => {
      const schema = z.toJSONSchema(CanonicalOrder, {
        io: 'input',
        // By default they are the sums of `taxes` and `fees`.
        override({ path, jsonSchema: each }) {
          if (path.at(-1) === 'money') {
            each.required = (each.required ?? []).filter((name) => !['tax', 'fee'].includes(name));
          }
        },
      });
      print(command, schema, JSON.stringify(schema, undefined, 2));
    });
}

function addCheck(platform: Command): void {
  platform
    .command('check')
    .description(
      'fetch orders and print how the service reads each: the canonical order, or its errors and the shape of the ' +
        'answer. Stores and orders nothing. Exits 1 if an order cannot be read, and 4 if one is doubtful',
    )
    .argument('<orders...>', 'their ids on the ordering platform')
    .option('--watch', 'check again when a file next to the module changes, until Ctrl-C')
    .option('--details', 'print every order in full. The default for one order')
    .option('--no-details', 'print one line for each order, and more only about errors. The default for several orders')
    .option('--shape', 'print the shape of the answer also without an error')
    .option(
      '--reveal',
      'also print a ticket with member data, and the full errors of the platform and the mapper, which may quote it',
    )
    .addHelpText(
      'after',
      `
An order that can be placed may be doubtful: sums do not add up, amounts look a hundred times too high (an item of 300
EUR with only whole amounts, or a total far above those of the other orders given) or too low (no item of 0.20 EUR), a time
is in the future or years ago, a name looks like an id, a line comes twice, a phone number or a country does not exist, or a
field was left out. It also says which integrations would refuse the order with any settings. It prints only the codes of the platform's errors.
Exit codes: 0 good, 1 an order cannot be read, 2 wrong input, 3 the platform has no such order, 4 an order is doubtful.
Needs ORDER_API_URL, ORDER_API_TOKEN and ORDER_MODULE like the service, but no database.
${examples('expediter platform check order-4711 --reveal', 'expediter platform check order-4711 order-4712 --watch')}`,
    )
    .action(async (orderIds: string[], options: CheckOptions, command: Command) => {
      const env = readConfigOf(process.env, 'ORDER_API_URL', 'ORDER_API_TOKEN', 'ORDER_MODULE', 'PROVIDER_MODULES');
      if (options.watch === true) return checkAtEachChange(env.ORDER_MODULE);
      // Imported here, because no other command needs these modules.
      const { loadOrderModule } = await import('../platform/load-order-module.ts');
      const module = await loadOrderModule(env);
      const registry = await loadProviders(env.PROVIDER_MODULES);
      const warn = (problem: string): void => printError(`warning: ${problem}`);
      const readToken = tokenReader(process.env);
      const about = { url: env.ORDER_API_URL, token: env.ORDER_API_TOKEN, readToken, module, registry, warn };
      const { details = orderIds.length === 1 } = options;
      const read = await readOrders(orderIds, about, options.reveal === true);
      const all: (Shown & { serviceOrderId: string })[] = [];
      for (const { serviceOrderId, checked, requests } of read) {
        all.push({ serviceOrderId, ...(await shown(checked, options)), ...(requests.length > 0 && { requests }) });
      }
      const [only] = all;
      if (only?.state === 'missing' && all.length === 1) {
        const asked = only.requests?.map(({ request, status }) => `${request}: ${status ?? 'no answer'}`).join(', ');
        throw new NotDone(404, asked === undefined ? NO_ORDER : `${NO_ORDER} ${asked}`);
      }
      if (all.some(({ state }) => state === 'failed')) process.exitCode = 1;
      else if (all.some(({ state }) => state === 'missing')) process.exitCode = 3;
      else if (all.some((each) => each.state === 'ok' && each.isDoubtful)) process.exitCode = 4;
      const lines = all.map((each) => ({ order: each.serviceOrderId, result: inOneLine(each) }));
      const withDetails = all.filter(({ state }) => details || state === 'failed');
      const json = all.length === 1 && only !== undefined ? only : all;
      const first = all.find(({ state }) => state === 'failed');
      const parts = withDetails.map((each) => {
        const isShown = details || options.shape === true;
        const text = inFull(!isShown && each.state === 'failed' ? { ...each, shape: [] } : each, options);
        return all.length === 1 && details ? text : `${each.serviceOrderId}: ${text}`;
      });
      const remarks = [
        !details && options.shape !== true && first?.state === 'failed' && first.shape !== undefined && WITH_SHAPE,
        first !== undefined && env.ORDER_MODULE === undefined && DEFAULT_QUERY,
        await todosIn(env.ORDER_MODULE),
      ];
      print(command, json, sections(...parts, (all.length > 1 || !details) && table(lines), ...remarks));
    });
}

type Requests = { request: string; status: number | null }[];
type About = Parameters<typeof checkOrder>[0];

/** Checks each order, and compares its amounts with those of the others. */
async function readOrders(orderIds: readonly string[], about: About, isRevealed: boolean) {
  // Imported here, because no other command needs these modules.
  const { checkOrder } = await import('../diagnostics/check-order.ts');
  const { doubtTotals } = await import('../diagnostics/doubt-order.ts');
  const read: { serviceOrderId: string; checked: CheckedOrder; requests: Requests }[] = [];
  for (const serviceOrderId of orderIds) {
    const made: { request: RequestOfModule; isPersonal: boolean }[] = [];
    // A path may repeat what an earlier answer said of the member.
    const onRequest = (request: RequestOfModule): void =>
      void made.push({ request, isPersonal: made.some((earlier) => earlier.request.answer !== undefined) });
    const checked = await checkOrder({ ...about, onRequest }, serviceOrderId);
    const requests = made.map(({ request: { method, path, answer }, isPersonal }) => ({
      request: `${method} ${isPersonal && !isRevealed ? '(by an answer: --reveal)' : path}`,
      status: answer?.status ?? null,
    }));
    read.push({ serviceOrderId, checked, requests });
  }
  const good = read.flatMap(({ checked }) => (checked.state === 'ok' ? [checked] : []));
  doubtTotals(good.map(({ order }) => order)).forEach((doubts, nth) => good[nth]?.remarks.push(...doubts));
  return read;
}

function addInit(platform: Command): void {
  platform
    .command('init')
    .description(
      "write a module for ORDER_MODULE from the platform's schema: a query of at most 25 fields, and a mapper. Its TODOs " +
        'say what names, types and the values of an order leave open',
    )
    .option('--out <file>', 'the file to write, which must not exist', './map-order.ts')
    .option('--schema <file>', "the platform's schema as GraphQL or as the JSON of an introspection, instead of asking")
    .option('--without-schema', 'write a skeleton for an invented schema, which you replace')
    .option('--order <id>', 'fetch this order, and let its values decide what the names leave open')
    .option('--header <name>', 'the header in which the platform takes ORDER_API_TOKEN, if it is no bearer token')
    .addHelpText(
      'after',
      `
Needs ORDER_API_URL and ORDER_API_TOKEN, unless the schema is given without --order. Prints no value of the order, which
is fetched with a wrong token too, to see the answer. If it cannot be fetched, nothing is written. Exits 3 if there is none.
${examples('expediter platform init --order order-4711', 'expediter platform init --header x-api-key', 'expediter platform init --schema schema.graphql')}`,
    )
    .action(async ({ out, header, order, ...from }: InitOptions, command: Command) => {
      const { draftModule, readSchema } = await import('../platform/draft-module.ts');
      const { fetchSample, fetchSchema } = await import('../diagnostics/examine-platform.ts');
      const isGiven = from.withoutSchema === true || from.schema !== undefined;
      const schema = await (isGiven ? readSchema(from.schema) : fetchSchema(process.env, header));
      const sample =
        order === undefined ? undefined : await fetchSample(process.env, { schema, header, orderId: order });
      const drafted = draftModule(schema, { header, sample });
      await writeFile(out, drafted.text, { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
        throw new NotDone(409, `${out} exists, and is not overwritten. Remove it, or name another file by --out.`);
      });
      const { text, field, others, found, open, addsUp } = drafted;
      const refused = [...(sample?.refused ?? [])];
      const lines = text.trimEnd().split('\n').length;
      print(
        command,
        { file: out, field, others, found, open, addsUp, refused },
        sections(
          `${out} is written: ${lines} lines. It reads orders by the query field ${field}.`,
          table(found),
          `${open.length} TODOs are left:`,
          table(open),
          addsUp === true && ADDS_UP,
          addsUp === false && ADDS_NOT_UP,
          sample !== undefined && addsUp === undefined && ALL_FREE,
          refused.length > 0 &&
            `The platform refuses these fields of the order, so they are left out: ${refused.join(', ')}`,
          others.length > 0 && `If orders are in another field, change the query: ${others.join(', ')}`,
          `Next, correct the module until this command prints your order:\n\nexport ORDER_MODULE=${/^[./]/.test(out) ? out : `./${out}`}\n${asTyped('expediter platform check --watch <orderId>')}`,
        ),
      );
    });
}

type CheckOptions = { watch?: true; details?: boolean; shape?: true; reveal?: true };
type InitOptions = { out: string; order?: string; header?: string; schema?: string; withoutSchema?: true };

/** Counts the TODOs that are left in a drafted module: a first guess may be wrong although the order can be placed. */
async function todosIn(file: string | undefined): Promise<string | undefined> {
  const text = file === undefined || !/^[./]/.test(file) ? '' : await readFile(resolve(file), 'utf8');
  const todos = text.match(/\/\/ TODO\b/g)?.length ?? 0;
  return todos === 0 ? undefined : `${todos} TODOs are left in ${file}.`;
}

/** Runs this command again, without --watch, in a process of its own, which loads the changed files. */
async function checkAtEachChange(file: string | undefined): Promise<void> {
  if (file === undefined) throw new NotDone(400, 'Nothing to watch: set ORDER_MODULE to a file.');
  const words = process.argv.slice(1).filter((word) => word !== '--watch');
  const details = words.includes('--details') ? [] : ['--no-details'];
  const check = async (changed: string): Promise<void> => {
    printError(`\n${new Date().toLocaleTimeString('en-GB')}  ${changed}`);
    const child = spawn(process.execPath, [...process.execArgv, ...words, ...details], { stdio: 'inherit' });
    await once(child, 'close');
  };
  const stop = onChange(dirname(resolve(file)), (name) => check(`${name} has changed`), { recursive: false });
  process.once('SIGINT', () => void stop());
  await check('watching; Ctrl-C ends this');
}

type Shown = Awaited<ReturnType<typeof shown>> & { requests?: Requests };
type Failed = Extract<Shown, { state: 'failed' }>;

/** @returns what is printed about an order. `order` is masked unless it is revealed */
async function shown(checked: CheckedOrder, options: CheckOptions) {
  const reveal = options.reveal === true;
  if (checked.state === 'ok') {
    const { order } = checked;
    const { maskOrder, NATIONAL } = await import('../diagnostics/check-order.ts');
    const { isWhole } = await import('../diagnostics/doubt-order.ts');
    const { ticketText } = await import('../diagnostics/ticket-text.ts');
    const total = `${toDecimal(order.money.total, order.money.currency)} ${order.money.currency}`;
    const inShort = `a ${order.fulfillment.type} at ${order.locationId} for ${total}`;
    const cancelled = order.cancelledAt !== undefined;
    // A location's country completes a national number.
    const isDoubtful = checked.remarks.length > 0 || checked.leftOut.some(({ says }) => says !== NATIONAL);
    const ticket = reveal && { ticket: ticketText(order) };
    const { currency } = order.money;
    const units = 10 ** minorDigits(currency);
    const inMinor = units === 1 ? '1 minor unit' : `${units} minor units`;
    // Hundredths of yen end in 00. Doubtful ones are a remark.
    const isOpen = units === 1 ? isWhole(order) : units !== 100;
    const isDoubted = checked.remarks.some(({ path }) => path === 'money');
    const says = `1 ${currency} is ${inMinor}. Does the platform keep hundredths? Use fromHundredths.`;
    const hint = isOpen && !isDoubted ? says : undefined;
    return { ...checked, order: reveal ? order : maskOrder(order), inShort, cancelled, isDoubtful, hint, ...ticket };
  }
  if (checked.state !== 'failed') return checked;
  const { thrown, errors, ...rest } = checked;
  return {
    ...rest,
    ...(errors !== undefined && { errors: errors.map((each) => describeError(each, reveal)) }),
    ...(reveal && 'thrown' in checked && { thrown: written(thrown) }),
  };
}

const NO_ORDER = 'The ordering platform has no order with this id.';
const CANCELLED =
  'The platform has cancelled it. It is withdrawn and not sent. If its POS already has it, it is cancelled there, or you are told to call. It was read as this order:';

function inOneLine(each: Shown): string {
  if (each.state === 'missing') return NO_ORDER;
  if (each.state === 'failed') return `cannot be placed: ${each.problem}`;
  if (each.state === 'cancelled') return 'is cancelled, and not sent. Nothing else of it can be read';
  if (each.state === 'skipped') return `is skipped by the mapper: ${each.reason ?? '(a reason must be one word)'}`;
  const odd = [
    ...each.remarks.map(({ path, says }) => `${path} ${says}`),
    ...each.leftOut.map(({ path, says }) => `${path} was left out${says === undefined ? '' : `: ${says}`}`),
  ];
  const remarks = odd.length > 0 ? `. CHECK: ${odd.join('; ')}` : '';
  return `${each.cancelled ? 'is cancelled, and not sent' : 'can be placed'}: ${each.inShort}${remarks}`;
}

function inFull(each: Shown, options: CheckOptions): string {
  return sections(outcomeInFull(each, options), describeRequests(each.requests));
}

function describeRequests(requests: Requests = []): string {
  const rows = requests.map(({ request, status }) => ({ request, answered: status ?? 'nothing' }));
  return titled('The requests of fetchOrder:', table(rows));
}

function outcomeInFull(each: Shown, { shape }: CheckOptions): string {
  const answer = shape === true && 'shape' in each && each.shape !== undefined && describeAnswer(each.shape);
  if (each.state === 'failed') return describeFailed(each);
  if (each.state === 'missing') return NO_ORDER;
  if (each.state === 'cancelled') {
    return sections(
      `It ${inOneLine(each)}. If its POS already has it, it is cancelled there, or you are told to call.`,
      answer,
    );
  }
  if (each.state === 'skipped') {
    return sections(`It ${inOneLine(each)}. It ends without a ticket, and its member is not notified.`, answer);
  }
  const { order, ticket, hint, cancelled, leftOut, remarks, refusals } = each;
  const without = leftOut.map(({ code, path, says }) => ({
    'left out': path,
    because: says === undefined ? code : `${code}: ${says}`,
  }));
  return sections(
    cancelled ? CANCELLED : 'It can be placed, as this order:',
    ticket,
    JSON.stringify(order, undefined, 2),
    table(without),
    titled(DOUBTS, remarks.map(({ path, says }) => `${path} ${says}`).join('\n')),
    titled(REFUSALS, table(refusals)),
    hint,
    answer,
  );
}

function describeFailed({ problem, cause, errors = [], shape = [], thrown }: Failed): string {
  const faults = cause.code === 'order_unreadable' ? cause.issues.map(issueInWords) : [];
  const isUnknown = errors.some(({ code }) => code !== null) && errors.every(({ judgedBy }) => !KNOWN.has(judgedBy));
  return sections(
    faults.length > 0
      ? 'It cannot be placed. Errors in the order that was made from the answer:'
      : `It cannot be placed: ${problem}`,
    faults.join('\n'),
    errors.length > 0 && describeErrors(errors),
    isUnknown && cause.code === 'platform_failing' && UNKNOWN_CODE,
    cause.code === 'order_mapper_threw' && (thrown ?? TO_REVEAL),
    ['platform_failing', 'platform_unreachable', 'platform_refuses_query'].includes(cause.code) &&
      asTyped("This command shows more, such as the platform's message: expediter doctor --only platform"),
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
  const codes =
    errors.some(({ code, judgedBy }) => code !== null || judgedBy !== null) &&
    tableOf('', errors, ({ code, judgedBy }) => ({
      'extensions.code': code ?? '(none)',
      'judged by': judgedBy ?? '(none)',
    }));
  const whole = errors.flatMap(({ error }) => (error === undefined ? [] : [written(error)]));
  const more =
    whole.length > 0 ? whole.join('\n') : 'Add --reveal to print the whole errors. They may quote the member.';
  return sections(`The errors in the platform's answer${codes ? '' : ' have no extensions.code'}:`, codes, more);
}

/** Formats a mapper's error with its stack, or an error of the platform. */
const written = (thrown: unknown): string => inspect(thrown, { depth: 6 });

function describeAnswer(shape: readonly ShapeLine[]): string {
  return `The shape of the platform's answer, without values:\n\n${tableOf('nothing', shape, ({ path, kind }) => ({ field: path, 'what is there': kind }))}`;
}
