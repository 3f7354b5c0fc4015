/** Signs in with wrong tokens at a steady pace, from its own process. */
import { randomBytes } from 'node:crypto';
import { OWN_PAGE } from '../../../world/system/log-in.ts';
import { postAtPace, type Answers } from '../../../world/network/post-at-pace.ts';

export type Guessing = {
  /** The operators' URL. */
  url: string;
  perSecond: number;
  seconds: number;
};

/** The answers by status, and how long all sign-ins took. */
export type Guessed = { answers: Answers; tookS: number };

process.on('message', ({ url, perSecond, seconds }: Guessing) => {
  const headers = { 'content-type': 'application/json', ...OWN_PAGE };
  const began = performance.now();
  const answered = postAtPace({ count: perSecond * seconds, perSecond }, () => {
    const body = JSON.stringify({ token: randomBytes(32).toString('base64url') });
    return { url: `${url}/console/session`, headers, body };
  });
  void answered.then((answers) => {
    process.send?.({ answers, tookS: (performance.now() - began) / 1_000 } satisfies Guessed);
  });
});
