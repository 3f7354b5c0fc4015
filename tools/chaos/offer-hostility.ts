/** A hostile sender in its own process. The first message to it is the `Hostility`. It ends when all is sent. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Target } from '../../world/hostile/hostile-input.ts';
import { webhookInputs } from '../../world/hostile/inputs-by-endpoint.ts';
import { sendRaw } from '../../world/hostile/send-raw.ts';
import { answerParent } from './ask-process.ts';

/** The attack. `token` is valid for the location `club`. */
export type Hostility = { port: number; token: string; perSecond: number; seconds: number };

/** Time to wait for an answer. Some requests are answered only when the service times out. */
const ANSWER_MS = 2_000;

/** Sends each kind of webhook of the hostile test suite in turn, at a steady pace. @returns answers by status */
async function offerHostility({ port, token, perSecond, seconds }: Hostility): Promise<Record<string, number>> {
  const others = { pushToken: '', signalToken: '', signPushToken: () => '' };
  const target: Target = { token, signedToken: token, listToken: token, ...others };
  const kinds = [...Map.groupBy(webhookInputs(), (input) => input.kind).values()];
  const answers: Record<string, number> = {};
  const sending: Promise<void>[] = [];
  const began = performance.now();
  for (let nth = 0; nth < perSecond * seconds; nth += 1) {
    await sleep(Math.max(0, began + (nth * 1_000) / perSecond - performance.now()));
    const kind = kinds[nth % kinds.length] ?? [];
    const input = kind[Math.floor(nth / kinds.length) % kind.length];
    if (input === undefined) continue;
    const sent = sendRaw(port, input.bytes(target), input.pace, ANSWER_MS).then(({ status }) => {
      answers[status] = (answers[status] ?? 0) + 1;
    });
    sending.push(sent);
  }
  await Promise.all(sending);
  return answers;
}

answerParent(offerHostility);
