import type { PubSub, Subscription, Topic } from '@google-cloud/pubsub';
import { withTimeout } from '../core/domain/with-timeout.ts';
import { loadPubsub } from '../load-pubsub.ts';
import { reporterOf, type Finding, type Part } from './finding.ts';

/** A topic or a subscription, as a variable names it. */
export type Named = { part: Part; variable: string; project: string; name: string };

/** Options of a call. */
export const CALL = { timeout: 4_000, retry: null };
/** Time for all of it: the client searches for credentials and connects before its own time-out begins. */
const GIVE_UP_MS = 5_000;

const NOT_FOUND = 5;
const PERMISSION_DENIED = 7;
const UNIMPLEMENTED = 12;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

/**
 * Asks Pub/Sub about one topic or subscription.
 * @param create the command that would make it
 * @returns what `ask` found, or why Pub/Sub gave no answer
 */
export async function askPubsub(
  about: Named,
  create: string,
  ask: (pubsub: PubSub) => Promise<Finding[]>,
): Promise<Finding[]> {
  const { PubSub } = await loadPubsub();
  const pubsub = new PubSub({ projectId: about.project });
  const asking = async (): Promise<Finding[]> => {
    // Without credentials the call itself would print a stack to standard error.
    if (!pubsub.isEmulator) await pubsub.auth.getClient();
    return ask(pubsub);
  };
  try {
    return await withTimeout(GIVE_UP_MS, asking, () => new Error('no answer'));
  } catch (error) {
    return [explain(error as { code?: number; message?: string }, about, create)];
  } finally {
    pubsub.close().catch(() => {});
  }
}

/** @returns those of the permissions that we have; undefined at an emulator, which has topics, but no permissions */
export async function readPermissions(
  { iam }: Topic | Subscription,
  ...asked: string[]
): Promise<Set<string> | undefined> {
  try {
    const [given] = await iam.testPermissions(asked, CALL);
    return new Set(asked.filter((each) => given[each] === true));
  } catch (error) {
    if ((error as { code?: number }).code === UNIMPLEMENTED) return undefined;
    throw error;
  }
}

function explain(
  { code, message = '' }: { code?: number; message?: string },
  { part, variable, project, name }: Named,
  create: string,
): Finding {
  const { failed } = reporterOf(part);
  const where = `"${name}" in project "${project}"`;
  if (code === NOT_FOUND) return failed(variable, `there is no ${where}`, create);
  if (code === UNAUTHENTICATED || code === PERMISSION_DENIED || /credentials/i.test(message)) {
    const toDo =
      'run it as a service account (Workload Identity, or GOOGLE_APPLICATION_CREDENTIALS on your own machine)';
    return failed(variable, 'Google does not know who we are', toDo);
  }
  const what = code === undefined ? 'no answer' : code === UNAVAILABLE ? 'it cannot be reached' : `gRPC status ${code}`;
  return failed(
    variable,
    `${where}: ${what}`,
    'look at PUBSUB_EMULATOR_HOST (unset in production), DNS and the network',
  );
}
