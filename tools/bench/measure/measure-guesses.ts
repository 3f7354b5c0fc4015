import { randomBytes, randomUUID } from 'node:crypto';
import { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeToken } from '../../../src/core/domain/make-token.ts';
import { digest } from '../../../src/core/operators/find-operator.ts';
import { freePort } from '../../../world/network/free-port.ts';
import { OWN_PAGE } from '../../../world/system/log-in.ts';
import { postWithAgent } from '../../../world/network/post-with-agent.ts';
import type { Child } from '../stage/fork-child.ts';
import type { Guessed, Guessing } from '../load/guess-tokens.ts';
import { setLiveStage, type LiveStage } from '../stage/set-live-stage.ts';
import { median } from './summarize.ts';
import { medianRatio, offerBeside, takePairs } from './take-pairs.ts';

export type GuessMeasurement = {
  /** The p99 of webhooks during wrong sign-ins at OPERATOR_PORT, against the p99 without them. */
  guessP99: number;
  /** The same if operators use the port of the webhooks. */
  guessSamePortP99: number;
  /** How many wrong sign-ins of one source were checked per second; the others were throttled. */
  guessesJudged: number;
  /** The time of a right sign-in from another address during wrong ones, against the time without them. */
  guessSignIn: number;
};

const GUESSES_PER_SECOND = 1_000;
/** A turn is short, so that other work of the machine affects both turns of a pair. */
const LOAD = { perSecond: 300, seconds: 4 };
const PAIRS_A_ROUND = 4;
const SIGN_INS = 10;
/** Another source address. On Linux, all of 127.0.0.0/8 is this machine. */
const ELSEWHERE = '127.0.0.2';

type Turn = { p99Ms: number; judged: number; signInMs: number; spent: string };

/** Measures what wrong sign-ins of one source cost the webhooks of the same process, and sign-ins from elsewhere. */
export async function measureGuesses(
  postgres: { url: string },
  about: { rounds: number },
  say: (line: string) => void,
): Promise<GuessMeasurement> {
  const stage = await setLiveStage(postgres.url);
  try {
    const apart = await compare(stage, await freePort(), about.rounds, say);
    const same = await compare(stage, undefined, about.rounds, say);
    return {
      guessP99: apart.p99,
      guessSamePortP99: same.p99,
      guessesJudged: Math.max(apart.judged, same.judged),
      guessSignIn: Math.max(apart.signIn, same.signIn),
    };
  } finally {
    await stage.stop();
  }
}

async function compare(
  stage: LiveStage,
  operatorPort: number | undefined,
  rounds: number,
  say: (line: string) => void,
): Promise<{ p99: number; judged: number; signIn: number }> {
  const env = {
    OPERATOR_TOKEN: randomBytes(32).toString('base64url'),
    ...(operatorPort !== undefined && { OPERATOR_PORT: String(operatorPort) }),
  };
  const service = await stage.startService('service', env);
  const url = operatorPort === undefined ? service.url : `http://127.0.0.1:${operatorPort}`;
  const guesser = await stage.start('load/guess-tokens');
  const pairs = await takePairs(
    rounds * PAIRS_A_ROUND,
    (kind) => take(stage, url, kind === 'beside' ? guesser : undefined),
    ({ quiet, beside }) =>
      say(
        `  ${operatorPort === undefined ? 'one port' : 'OPERATOR_PORT'}: webhooks p99 ${beside.p99Ms.toFixed(1)} ms, ` +
          `quiet ${quiet.p99Ms.toFixed(1)} ms; ${beside.judged.toFixed(1)} guesses judged a second; a right sign-in ` +
          `from elsewhere ${beside.signInMs.toFixed(1)} ms, quiet ${quiet.signInMs.toFixed(1)} ms; ` +
          `${beside.spent}, quiet ${quiet.spent}`,
      ),
  );
  return {
    p99: medianRatio(pairs, ({ p99Ms }) => p99Ms),
    judged: median(pairs.map(({ beside }) => beside.judged)),
    signIn: medianRatio(pairs, ({ signInMs }) => signInMs),
  };
}

/** @param guesser undefined for a quiet turn */
async function take(stage: LiveStage, url: string, guesser: Child | undefined): Promise<Turn> {
  const guess =
    guesser &&
    ((seconds: number) => guesser.ask<Guessed>({ url, perSecond: GUESSES_PER_SECOND, seconds } satisfies Guessing));
  const { p99Ms, spent, disturbed, done } = await offerBeside(stage, LOAD, guess, () => signIn(stage, url));
  const judged = disturbed === undefined ? 0 : (disturbed.answers['401'] ?? 0) / disturbed.tookS;
  return { p99Ms, signInMs: done, judged, spent };
}

/** Signs in with new tokens, which the process has not cached. @returns the median time in milliseconds */
async function signIn({ client }: LiveStage, url: string): Promise<number> {
  const times: number[] = [];
  const agent = new Agent({ localAddress: ELSEWHERE });
  while (times.length < SIGN_INS) {
    const token = makeToken('exo_');
    await client.query(`INSERT INTO operator_tokens (token_id, sha256, name, roles) VALUES ($1, $2, $3, '{viewer}')`, [
      randomUUID(),
      digest(token),
      token.slice(4),
    ]);
    const began = performance.now();
    const headers = { 'content-type': 'application/json', ...OWN_PAGE };
    const status = await postWithAgent(`${url}/console/session`, agent, { headers, body: JSON.stringify({ token }) });
    if (status !== '204') throw new Error(`a right sign-in from elsewhere was answered ${status}`);
    times.push(performance.now() - began);
    await sleep((LOAD.seconds * 800) / SIGN_INS);
  }
  return median(times);
}
