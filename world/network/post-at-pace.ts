import { Agent } from 'node:http';
import { postWithAgent, type Posted } from './post-with-agent.ts';

/** Requests by what `postWithAgent` returned. `held`: due and never sent, since too many waited. */
export type Answers = Record<string, number>;

const SOCKETS = 1_000;
/** Requests that may wait, most of them for a socket. */
const WAITING = 10_000;
const TICK_MS = 2;

/**
 * Posts in an open loop: each request when it is due, whatever became of those before it.
 * @param request the n-th, from 0 on; `dueAt` by `performance.now()`
 * @param onAnswer gets the status, too
 */
export async function postAtPace(
  about: { count: number; perSecond: number },
  request: (nth: number, dueAt: number) => { url: string } & Posted,
  onAnswer: (status: string, dueAt: number) => void = () => {},
): Promise<Answers> {
  const agent = new Agent({ keepAlive: true, maxSockets: SOCKETS });
  const answers: Answers = {};
  const began = performance.now();
  let underWay = 0;
  let nth = 0;

  const count = (answer: string): void => void (answers[answer] = (answers[answer] ?? 0) + 1);
  const send = async (dueAt: number): Promise<void> => {
    const { url, ...posted } = request(nth, dueAt);
    const status = await postWithAgent(url, agent, posted);
    count(status);
    onAnswer(status, dueAt);
  };

  await new Promise<void>((done) => {
    const endWhenAnswered = (): void => {
      if (nth >= about.count && underWay === 0) done();
    };
    const timer = setInterval(() => {
      for (; nth < about.count; nth += 1) {
        const dueAt = began + (nth * 1_000) / about.perSecond;
        if (dueAt > performance.now()) return;
        if (underWay >= WAITING) {
          count('held');
          continue;
        }
        underWay += 1;
        void send(dueAt).finally(() => {
          underWay -= 1;
          endWhenAnswered();
        });
      }
      clearInterval(timer);
      endWhenAnswered();
    }, TICK_MS);
  });
  agent.destroy();
  return answers;
}
