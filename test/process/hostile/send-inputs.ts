import { bodyAsItCame } from '../../support/body-as-it-came.ts';
import type { HostileInput } from '../../../world/hostile/hostile-input.ts';
import { sendRaw, type RawAnswer } from '../../../world/hostile/send-raw.ts';
import type { RunningTarget } from './start-target.ts';

const AT_ONCE = 24;
/** One location may hold 16 MiB of bodies, and a request its 1.4 s. */
const LARGE_AT_ONCE = 4;
const LARGE = 200_000;
/** As much as the service keeps of a body over its limit. */
const BEGINNING = 65_536;
const ANSWER_MS = 10_000;
const SLOW_ANSWER_MS = 25_000;
const CUT_AFTER_MS = 14_000;
/** A slow machine may not commit a webhook, or look up a token, in time. Nobody deserves a 500 for long. */
const AGAIN_MAX = 5;

/** `body` is as it came. */
type Row = { id: string; outcome: string; reason: string | null; body: Buffer; truncated: boolean; headers: object };
/** `again`: how often it was sent again, as a POS does after a 500. */
type Sent = { input: HostileInput; answer: RawAnswer; milliseconds: number; again: number };

/**
 * Sends all of them, many at once, and compares answers, rows and orders with what is expected.
 * @returns one line for each difference
 */
export async function sendInputs(running: RunningTarget, inputs: readonly HostileInput[]): Promise<string[]> {
  const known = new Set(await orders(running));
  const before = await countWebhooks(running);
  const [large = [], small = []] = [true, false].map((is) => inputs.filter((input) => isLarge(input) === is));
  const sent = [...(await send(running, small, AT_ONCE)), ...(await send(running, large, LARGE_AT_ONCE))];
  const stored = inputs.filter(isStored).length;
  const more = (await countWebhooks(running)) - before;
  // One that was answered 500 may be stored all the same.
  const most = stored + sent.reduce((sum, { again }) => sum + again, 0);
  return [
    ...sent.flatMap(answerDiffers),
    ...(await rowsDiffer(running, sent)),
    ...(more >= stored && more <= most ? [] : [`${more} webhooks were stored, not ${stored}`]),
    ...ordersDiffer(inputs, known, await orders(running)),
  ];
}

/** Sends those that take their time, all at once, without looking at what becomes of the others meanwhile. */
export async function sendSlowInputs(running: RunningTarget, inputs: readonly HostileInput[]): Promise<string[]> {
  const sent = await send(running, inputs, inputs.length);
  const early = sent.filter(({ milliseconds }) => milliseconds < CUT_AFTER_MS);
  return [
    ...sent.flatMap(answerDiffers),
    ...early.map(({ input, milliseconds }) => `${nameOf(input)}: cut off after ${Math.round(milliseconds)} ms`),
  ];
}

export async function send(running: RunningTarget, inputs: readonly HostileInput[], atOnce: number): Promise<Sent[]> {
  const waiting = inputs.values();
  const sent: Sent[] = [];
  await Promise.all(
    Array.from({ length: Math.min(atOnce, inputs.length) }, async () => {
      for (const input of waiting) {
        const began = performance.now();
        const bytes = input.bytes(running.target);
        const limitMs = input.slow ? SLOW_ANSWER_MS : ANSWER_MS;
        const most = input.expected.status === 200 || input.expected.status === 401 ? AGAIN_MAX : 0;
        let again = 0;
        let answer = await sendRaw(running.port, bytes, input.pace, limitMs);
        for (; answer.status === 500 && again < most; again += 1) {
          answer = await sendRaw(running.port, bytes, input.pace, limitMs);
        }
        sent.push({ input, answer, milliseconds: performance.now() - began, again });
      }
    }),
  );
  return sent;
}

function isStored({ expected }: HostileInput): boolean {
  return expected.status === 200 && expected.outcome !== 'followed';
}

export function isLarge({ body, pace }: HostileInput): boolean {
  return body.length > LARGE || pace.flood !== undefined;
}

function answerDiffers({ input, answer }: Sent): string[] {
  const { expected } = input;
  const was = (what: string): string[] => [`${nameOf(input)}: ${what}, not ${JSON.stringify(expected)}`];
  // TCP takes back an answer that is not read yet from a sender that goes on writing.
  const writesOn = input.slow && input.pace.dribble !== undefined;
  const mayBeCut = writesOn || expected.status === 'none' || ('orCut' in expected && expected.orCut);
  if (answer.status === 'cut' && mayBeCut) return [];
  if (answer.status !== expected.status) return was(`${answer.status} ${answer.body.slice(0, 200)}`);
  const { headers, body } = answer;
  if (expected.status === 200) {
    if (expected.outcome === 'followed') return headers['content-type'] === 'text/event-stream' ? [] : was(body);
    const { outcome, webhookId, ...rest } = JSON.parse(body) as Record<string, unknown>;
    if (outcome !== expected.outcome) return was(`outcome ${String(outcome)}`);
    return typeof webhookId === 'string' && Object.keys(rest).length === 0 ? [] : was(body);
  }
  if ('exactly' in expected) {
    const { date: _date, ...rest } = headers;
    const whole = JSON.stringify({ ...rest, body });
    return whole === JSON.stringify(expected.exactly) ? [] : was(whole);
  }
  if (expected.status === 401) return headers['connection'] === 'close' ? [] : was('left open');
  if (expected.status !== 500 && expected.status !== 503) return [];
  return headers['retry-after'] === '1' && headers['connection'] !== 'keep-alive' ? [] : was(JSON.stringify(headers));
}

async function rowsDiffer({ system, target }: RunningTarget, sent: readonly Sent[]): Promise<string[]> {
  const rowsWhere = async (condition: string, value: unknown): Promise<Row[]> => {
    const rows = await system.query(`SELECT * FROM webhooks WHERE ${condition}`, [value]);
    return rows.map((row) => ({ ...row, body: bodyAsItCame(row) }) as Row);
  };
  const stored = sent.filter(({ input }) => isStored(input));
  const answered = stored
    .filter(({ answer }) => answer.status === 200)
    .map(({ input, answer }) => ({ input, id: (JSON.parse(answer.body) as { webhookId: string }).webhookId }));
  const ids = answered.map(({ id }) => id);
  const byId = new Map((await rowsWhere('id = ANY ($1)', ids)).map((row) => [row.id, row]));
  const differences = answered.flatMap(({ input, id }) => rowDiffers(input, byId.get(id), target.token));
  for (const { input } of stored.filter(({ answer }) => answer.status === 'cut')) {
    const beginning = input.body.subarray(0, BEGINNING);
    const rows = await rowsWhere('coalesce(zstd_of, octet_length(body)) = $1', beginning.length);
    const found = rows.find(({ body }) => body.equals(beginning));
    differences.push(...rowDiffers(input, found, target.token));
  }
  return differences;
}

function rowDiffers({ expected, body, ...input }: HostileInput, row: Row | undefined, token: string): string[] {
  const was = (what: string): string[] => [`${nameOf(input)}: the row ${what}`];
  if (expected.status !== 200 || expected.outcome === 'followed') return [];
  if (row === undefined) return was('is missing');
  const beginning = expected.outcome === 'dropped' && expected.beginning === true;
  if (row.outcome !== expected.outcome) return was(`says ${row.outcome}`);
  if (expected.outcome === 'dropped' && !row.reason?.startsWith(expected.reason))
    return was(`says "${row.reason}", not "${expected.reason}"`);
  if (row.truncated !== beginning) return was(`is ${row.truncated ? '' : 'not '}marked as truncated`);
  const kept = beginning ? body.subarray(0, BEGINNING) : body;
  if (!row.body.equals(kept)) return was(`holds ${row.body.length} other bytes than the ${kept.length} sent`);
  const told = JSON.stringify([row.headers, row.reason]);
  if (told.includes(token) || 'authorization' in row.headers || 'cookie' in row.headers) return was('holds a secret');
  return [];
}

function ordersDiffer(inputs: readonly HostileInput[], known: ReadonlySet<string>, now: readonly string[]): string[] {
  const expected = new Set(inputs.flatMap(({ expected }) => (expected.status === 204 ? (expected.order ?? []) : [])));
  const strange = now.filter((order) => !known.has(order) && !expected.has(order));
  const missing = [...expected].filter((order) => !now.includes(order));
  return [
    ...strange.map((order) => `the order ${JSON.stringify(order)} was recorded`),
    ...missing.map((order) => `the order ${JSON.stringify(order)} was not recorded`),
  ];
}

/** Ends them as well: nobody has such orders, and asking for them again and again would only take time. */
async function orders({ system }: RunningTarget): Promise<string[]> {
  await system.query(
    `UPDATE placements SET state = 'failed', finished_at = now(), absent_at = now() WHERE finished_at IS NULL AND service_order_id NOT LIKE 'order-%'`,
  );
  return (await system.query('SELECT service_order_id FROM placements')).map((row) => String(row['service_order_id']));
}

async function countWebhooks({ system }: RunningTarget): Promise<number> {
  return Number((await system.query('SELECT count(*) AS n FROM webhooks'))[0]?.['n']);
}

function nameOf({ kind, name }: Pick<HostileInput, 'kind' | 'name'>): string {
  return `${kind} / ${name.slice(0, 80)}`;
}
