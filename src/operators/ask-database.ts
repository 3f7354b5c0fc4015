import { commandLineActor } from '../terminal/command-line-actor.ts';
import { loadProviders, settingsRules, withDatabase } from '../terminal/settings-rules.ts';
import { WrongEnvironment, readConfigOf, type Config } from '../config/config.ts';
import { guardedFetch } from '../core/egress/guarded-fetch.ts';
import { locationDeps } from '../core/locations/location-deps.ts';
import { membersOf, settingsDecrypter } from '../core/locations/locations.ts';
import { noticeWays } from '../core/notices/ways.ts';
import { audited } from '../core/operators/audit.ts';
import { actOf } from './action-of.ts';
import { perform, type Ask, type Caller, type Operation, type Options } from './operation.ts';
import { NotDone } from '../core/operators/not-done.ts';

/** They end an operation with `streams` in an orderly way. */
const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** The parts of a `Caller` that are the same for all operations of a command. */
type Shared = Omit<Caller, 'within' | 'note'>;

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
  const settings = rules && { ...rules, publicUrl: rules.publicUrl ?? '', decryptSettings: settingsDecrypter(rules) };
  return withDatabase(
    env.DATABASE_URL,
    async (pool) => {
      const pos =
        rules && reads.includes('ALLOW_PRIVATE_HOSTS')
          ? await locationDeps(pool, rules, env.ALLOW_PRIVATE_HOSTS)
          : undefined;
      const ways = reads.includes('NOTIFY_WEBHOOK_URL')
        ? noticeWays(env, guardedFetch(env.ALLOW_PRIVATE_HOSTS), () => new Date())
        : undefined;
      return work(async (operation, input, tell = () => {}) => {
        const stopping = new AbortController();
        const stop = (): void => stopping.abort(new Error('stopped; the work has been ended'));
        const shared = {
          pool,
          config: env,
          by: commandLineActor(),
          headers: {},
          scope: () => undefined,
          mayPlace: () => true,
          hasAt: () => true,
          tell,
          stopped: stopping.signal,
          isOver: () => false,
          observe() {},
          wake() {},
          wakeBoard() {},
          // Each is undefined unless an operation `reads` it.
          ...({ settings, pos, ways } as Pick<Caller, 'settings' | 'pos' | 'ways'>),
        };
        if (operation.api.streams !== undefined) for (const signal of SIGNALS) process.once(signal, stop);
        return performAction(operation, shared, input).finally(() => {
          for (const signal of SIGNALS) process.off(signal, stop);
        });
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

/** Performs operations that send no query. */
async function askWithoutDatabase(reads: readonly (keyof Config)[]): Promise<Ask> {
  const env = readConfigOf(process.env, 'PROVIDER_MODULES', ...reads);
  const settings = { registry: await loadProviders(env.PROVIDER_MODULES) };
  return (operation, input) => perform(operation, { config: env, settings, by: commandLineActor() } as Caller, input);
}

/** Performs an operation, and records it in the audit as an action of the command's user. */
async function performAction(operation: Operation, shared: Shared, input: Options): Promise<object> {
  const { pool, by } = shared;
  const { about, access, api } = operation;
  const { group } = input;
  const ofGroup = typeof group === 'string' && access.of === 'list' ? await membersOf(pool, group) : undefined;
  let after: string | undefined;
  const caller: Caller = {
    ...shared,
    within(requested) {
      if (requested === undefined) return ofGroup;
      return ofGroup?.includes(requested) === false ? [] : [requested];
    },
    note: (code) => void (after = code),
  };
  const isDry = input['dryRun'] === true;
  const action = await actOf(
    pool,
    access,
    { params: input, query: input, isDry },
    about && (() => about(caller, input)),
  );
  const work = (): Promise<{ done: object } | { refused: NotDone }> =>
    perform(operation, caller, input).then(
      (done) => ({ done }),
      (error: unknown) => {
        if (error instanceof NotDone) return { refused: error };
        throw error;
      },
    );
  const ended = await (action === undefined ? work() : audited(pool, by, action, work, () => after));
  if ('refused' in ended) throw ended.refused;
  // Leaves out the same fields as the API.
  return api.output.parse(ended.done) as object;
}
