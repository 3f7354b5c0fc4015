/** Searches the states of `placement.pml` with Debian's `spin` and `gcc`, for what its claims forbid, and for cycles. */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const MODEL = fileURLToPath(new URL('placement.pml', import.meta.url));

/** `dedup`: 0 makes a ticket for each request, 1 one ticket for ever, 2 one ticket for some time. */
export type ModelledPos = { dedup: 0 | 1 | 2; find: 0 | 1; cancels: 0 | 1 };

export const POS_KINDS: readonly ModelledPos[] = ([0, 1, 2] as const).flatMap((dedup) =>
  ([0, 1] as const).map((find) => ({ dedup, find, cancels: find })),
);

const FINDABLE: ModelledPos = { dedup: 0, find: 1, cancels: 0 };
const BELIEVED: ModelledPos = { dedup: 1, find: 1, cancels: 0 };

/** The guards that the model can remove, by their marks in src, with a POS that notices it. */
export const MODELLED_GUARDS: Readonly<Record<string, ModelledPos>> = {
  'no-ticket-after-cancel': FINDABLE,
  'attempt-written': FINDABLE,
  'no-late-call': FINDABLE,
  'lease-covers-call': FINDABLE,
  'unsure-503': FINDABLE,
  'ask-before-retry': FINDABLE,
  'no-retry-once-cancelled': BELIEVED,
  'absent-after': FINDABLE,
  'cancel-written': FINDABLE,
  'died-in-doubt': FINDABLE,
  'lost-in-doubt': FINDABLE,
  'doubt-not-repeated': FINDABLE,
  'cancel-lock': BELIEVED,
  'signal-refreshes': FINDABLE,
  'refresh-ends': FINDABLE,
  'higher-rank': FINDABLE,
  'order-lock': FINDABLE,
  'early-end-notified': FINDABLE,
  'fetched-under-lease': FINDABLE,
  'waiting-is-due': FINDABLE,
  'repeat-may-arrive': BELIEVED,
  'doubt-stays': FINDABLE,
  // No mark: LOOK_UP_AFTER_S of settle-doubt.ts, POSTPONE of conclude-placement.ts.
  'look-up-after': FINDABLE,
  'doubt-needs-lease': BELIEVED,
};

export type Search = {
  states: number;
  /** False if a limit stopped the search, or if it found an error. */
  isComplete: boolean;
  /** The claim that is false, or `non-progress cycle`. */
  error: string | undefined;
};

/** @param without a guard that the model lacks */
export function searchModel(pos: ModelledPos, without?: string): Promise<Search> {
  return withModel(pos, [`-DWITHOUT=${without?.replaceAll('-', '_') ?? 0}`], ['-DNP'], async (pan, cwd) => {
    const { stdout } = await run(pan, ['-l', '-m100000', '-w24'], { cwd, maxBuffer: 1e8 });
    const [, error] = /^pan:1: (.*) \(at depth/m.exec(stdout) ?? [];
    const isCut = /max search depth too small|Search not completed|out of memory/.test(stdout);
    return {
      states: Number(/(\S+) states, stored/.exec(stdout)?.[1]),
      isComplete: !isCut && error === undefined,
      error,
    };
  });
}

/** Compiles the model in a folder of its own. */
async function withModel<Result>(
  { dedup, find, cancels }: ModelledPos,
  forSpin: readonly string[],
  forGcc: readonly string[],
  use: (pan: string, cwd: string) => Promise<Result>,
): Promise<Result> {
  const cwd = await mkdtemp(join(tmpdir(), 'model-'));
  try {
    await cp(MODEL, join(cwd, 'placement.pml'));
    await writeFile(join(cwd, 'history.h'), HISTORY_H);
    const kind = ['-DFAULTS=3', `-DDEDUP=${dedup}`, `-DFIND=${find}`, `-DCANCELS=${cancels}`];
    await run('spin', ['-a', ...kind, ...forSpin, 'placement.pml'], { cwd });
    await run('gcc', [`-O${forSpin[0] === '-DWITHOUT=0' ? 1 : 0}`, '-w', '-DNOREDUCE', ...forGcc, '-opan', 'pan.c'], {
      cwd,
    });
    return await use(join(cwd, 'pan'), cwd);
  } finally {
    await rm(cwd, { recursive: true });
  }
}

/** The history of one order, in the order of commits and of the tickets at the POS. */
export type OrderHistory = readonly string[];

const EVENTS = ['createOrder', 'findOrder', 'cancelOrder', 'ticket', 'cancel requested', 'cancel refused'];
const ENDS = ['sent', 'failed', 'withdrawn'];

/** @param event one of EVENTS; `rank 0` to `rank 80`, a live message of a step; or `ends` and the placement's state */
function codeOf(event: string): number {
  const [what, about = ''] = event.split(' ');
  if (what === 'rank') return 16 + Number(about) / 10;
  if (what === 'ends') return 33 + ENDS.indexOf(about);
  const code = EVENTS.indexOf(event) + 1;
  if (code === 0) throw new TypeError(`the model has no event ${event}`);
  return code;
}

/** Reads the history from the file that HISTORY names. Its numbers are those of the model's events. */
const HISTORY_H = `
#include <stdio.h>
#include <stdlib.h>
static int history[256];
__attribute__((constructor)) static void read_history(void) {
  FILE *file = getenv("HISTORY") ? fopen(getenv("HISTORY"), "r") : NULL;
  for (int nth = 0; file && nth < 254 && fscanf(file, "%d", &history[nth]) == 1; nth++) {}
}
`;

/** Asks for each history whether some path of the model has exactly its events. An empty history is not accepted. */
export function acceptHistories(pos: ModelledPos, histories: readonly OrderHistory[]): Promise<boolean[]> {
  return withModel(pos, ['-DWITHOUT=0', '-DTRACE'], ['-DSAFETY'], async (pan, cwd) => {
    const accepted: boolean[] = [];
    for (const history of histories) {
      const file = join(cwd, 'history');
      await writeFile(file, history.map(codeOf).join(' '));
      const { stdout } = await run(pan, ['-E', '-m1000000', '-w22'], { cwd, env: { HISTORY: file }, maxBuffer: 1e8 });
      if (/max search depth too small|Search not completed\b.*out of memory/.test(stdout)) throw new Error(stdout);
      accepted.push(/assertion violated 0/.test(stdout));
    }
    return accepted;
  });
}
