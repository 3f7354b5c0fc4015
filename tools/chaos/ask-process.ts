import { fork } from 'node:child_process';
import { once } from 'node:events';

/** Runs a program in a process of its own, whose work does not add to the latency of others, and asks it one question. */
export async function askProcess<Answer>(program: URL, question: object): Promise<Answer> {
  const child = fork(program);
  child.send(question);
  const [answer] = (await once(child, 'message')) as [Answer];
  return answer;
}

/** Answers the question in that program, and ends it. */
export function answerParent(answerTo: (question: never) => Promise<object>): void {
  process.once('message', (question) => {
    void answerTo(question as never).then((answer) =>
      process.send?.(answer, undefined, undefined, () => process.disconnect?.()),
    );
  });
}
