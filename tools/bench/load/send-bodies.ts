/** Puts settings of a location without storing them, on several connections in closed loops, from its own process. */
import type { Answers } from '../../../world/network/post-at-pace.ts';

export type Sending = {
  /** The location's URL. */
  url: string;
  /** A token of an operator who may change the location. */
  token: string;
  body: object;
  connections: number;
  seconds: number;
};

process.on('message', ({ url, token, body, connections, seconds }: Sending) => {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const text = JSON.stringify(body);
  const answers: Answers = {};
  const end = performance.now() + seconds * 1_000;
  /** Waits for the last answer too, so that no body is left for the next turn. */
  const send = async (): Promise<void> => {
    while (performance.now() < end) {
      const response = await fetch(`${url}?dryRun=true&anyway=true`, { method: 'PUT', headers, body: text });
      await response.text();
      answers[response.status] = (answers[response.status] ?? 0) + 1;
    }
  };
  void Promise.all(Array.from({ length: connections }, send)).then(() => process.send?.(answers));
});
