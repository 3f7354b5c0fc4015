/** A sender in its own process. The first message to it is the `Load`, and its answer is what was `Offered`. */
import { answerParent } from './ask-process.ts';
import { postAtPace, type Answers } from '../../world/network/post-at-pace.ts';

export type Load = {
  /** The URLs, used in turn. */
  urls: string[];
  /** The prefix of order ids: the n-th webhook is about order `<prefix><n>`. */
  prefix: string;
  perSecond: number;
  seconds: number;
  /** The first seconds are not measured: code is compiled then, and connections are opened. */
  warmUpS: number;
};

/** `latencies`: milliseconds from a webhook's due time to its answer, if that was 200. */
export type Offered = { answers: Answers; latencies: number[] };

async function offerLoad({ urls, prefix, perSecond, seconds, warmUpS }: Load): Promise<Offered> {
  const latencies: number[] = [];
  const began = performance.now();
  const answers = await postAtPace(
    { count: seconds * perSecond, perSecond },
    (nth) => {
      const order = { thirdPartyReference: `${prefix}${nth}`, status: 'received' };
      const body = JSON.stringify({ eventType: 'order.status', order });
      const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
      return { url: urls[nth % urls.length] ?? '', headers, body };
    },
    (status, dueAt) => {
      if (status === '200' && dueAt - began >= warmUpS * 1_000) latencies.push(performance.now() - dueAt);
    },
  );
  return { answers, latencies };
}

answerParent(offerLoad);
