import { commandLineActor } from '../terminal/command-line-actor.ts';
import { loadProviders, settingsRules, withDatabase } from '../terminal/settings-rules.ts';
import { WrongEnvironment, readConfigOf, type Config } from '../config/config.ts';
import { guardedFetch } from '../core/egress/guarded-fetch.ts';
import { locationDeps } from '../core/locations/location-deps.ts';
import { membersOf, settingsDecrypter, type SettingsRules } from '../core/locations/locations.ts';
import { noticeWays } from '../core/notices/ways.ts';
import { audited } from '../core/operators/audit.ts';
import { actOf } from './action-of.ts';
import { perform, type Ask, type Caller, type Operation, type Options, type Settings, type Tell } from './operation.ts';
import { NotDone } from '../core/operators/not-done.ts';

/** They end an operation with `streams` in an orderly way. */
const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

type Noting = Caller & { noted(): string | undefined; limitTo(group: string): Promise<void> };

/**
 * Opens the database of DATABASE_URL for the operations of one command, which it performs as this machine's user.
 * @param connections how many operations may run at the same time
 */
export async function withAskDatabase<Result>(
  operations: readonly Operation[],
  work: (ask: Ask) => Promise<Result>,
  connections = 1,
): Promise<Result> {
  const reads = operations.flatMap((operation) => operation.reads ?? []);
  if (operations.every(({ access }) => access.whileAway === true)) return work(await askWithoutDatabase(reads));
  const env = readOwn(reads);
  const rules = reads.includes('SETTINGS_KEY') ? await settingsRules(env) : undefined;
  const settings = rules && settingsOf(rules);
  const unread = (): never => {
    throw new Error('an operation does not say that it reads this');
  };
  return withDatabase(
    env.DATABASE_URL,
    async (pool) => {
      const pos =
        rules && reads.includes('ALLOW_PRIVATE_HOSTS')
          ? await locationDeps(pool, rules, env.ALLOW_PRIVATE_HOSTS)
          : undefined;
      const callerOf = (tell: Tell, stopped: AbortSignal): Noting => {
        let after: string | undefined;
        let ofGroup: readonly string[] | undefined;
        return {
          pool,
          config: env,
          by: commandLineActor(),
          headers: {},
          within(requested) {
            if (requested === undefined) return ofGroup;
            return ofGroup?.includes(requested) === false ? [] : [requested];
          },
          scope: () => undefined,
          mayPlace: () => true,
          hasAt: () => true,
          note: (code) => void (after = code),
          noted: () => after,
          limitTo: async (group) => void (ofGroup = await membersOf(pool, group)),
          tell,
          stopped,
          isOver: () => false,
          observe() {},
          wake() {},
          wakeBoard() {},
          get ways() {
            return noticeWays(env, guardedFetch(env.ALLOW_PRIVATE_HOSTS), () => new Date());
          },
          get settings() {
            return settings ?? unread();
          },
          get pos() {
            return pos ?? unread();
          },
        };
      };
      return work(async (operation, input, tell = () => {}) => {
        const stopping = new AbortController();
        const stop = (): void => stopping.abort(new Error('stopped; the work has been ended'));
        if (operation.api.streams !== undefined) for (const signal of SIGNALS) process.once(signal, stop);
        try {
          const caller = callerOf(tell, stopping.signal);
          return asAnswered(operation, await performAction(operation, caller, input));
        } finally {
          for (const signal of SIGNALS) process.off(signal, stop);
        }
      });
    },
    connections,
  );
}

/** @throws WrongEnvironment that also names the API, if there is no database */
function readOwn(reads: readonly (keyof Config)[]): Config {
  try {
    return readConfigOf(process.env, 'DATABASE_URL', ...reads);
  } catch (error) {
    if (!(error instanceof WrongEnvironment && /^ {2}DATABASE_URL: is required/m.test(error.message))) throw error;
    throw new WrongEnvironment(
      `${error.message}\nOr use the API of a service: expediter login <url>, or set EXPEDITER_URL and EXPEDITER_TOKEN`,
    );
  }
}

/** Leaves out what the API would leave out. */
function asAnswered({ api }: Operation, done: object): object {
  return api.output.parse(done) as object;
}

/** Performs operations that send no query. */
async function askWithoutDatabase(reads: readonly (keyof Config)[]): Promise<Ask> {
  const env = readConfigOf(process.env, 'PROVIDER_MODULES', ...reads);
  const settings = { registry: await loadProviders(env.PROVIDER_MODULES) };
  return (operation, input) => perform(operation, { config: env, settings, by: commandLineActor() } as Caller, input);
}

function settingsOf(rules: SettingsRules): Settings {
  const { registry, keys, publicUrl = '' } = rules;
  return { decryptSettings: settingsDecrypter(rules), keys, publicUrl, registry };
}

/** Performs an operation, and records it in the audit as an action of the command's user. */
async function performAction(operation: Operation, caller: Noting, input: Options): Promise<object> {
  const { pool, by } = caller;
  const { about } = operation;
  const isDry = input['dryRun'] === true;
  if (typeof input['group'] === 'string' && operation.access.of === 'list') await caller.limitTo(input['group']);
  const action = await actOf(
    pool,
    operation.access,
    { params: input, query: input, isDry },
    about && (() => about(caller, input)),
  );
  if (action === undefined) return perform(operation, caller, input);
  const work = (): Promise<{ done: object } | { refused: NotDone }> =>
    perform(operation, caller, input).then(
      (done) => ({ done }),
      (error: unknown) => {
        if (error instanceof NotDone) return { refused: error };
        throw error;
      },
    );
  const ended = await audited(pool, by, action, work, caller.noted);
  if ('refused' in ended) throw ended.refused;
  return ended.done;
}
