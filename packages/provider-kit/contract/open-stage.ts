import type { CanonicalOrder, OrderRef } from '../../../src/core/domain/order.ts';
import type { Credentials, Grant, PosContext, Provider } from '../../../src/core/domain/provider.ts';
import { boundedFetch } from '../../../src/core/egress/bounded-fetch.ts';
import type { Simulator, StartSimulator } from '../../../world/pos/simulator.ts';
import { inMemoryCredentials } from './in-memory-credentials.ts';

/** Clock advance between two orders, so that no test reaches the POS's limit. */
const PAUSE_S = 10;

export type Stage<Settings> = Awaited<ReturnType<typeof openStage<Settings>>>;

/** A POS with one location, and a process that has its settings. */
export async function openStage<Settings>(provider: Provider<Settings>, start: StartSimulator, currency = 'EUR') {
  const pos = await start({ currency });
  const settings = provider.settings.parse(pos.settings);
  let now = new Date();
  const kept = inMemoryCredentials(() => now);
  const granted: Grant[] = [];
  let tokensAsked = 0;
  const credentials: Credentials = {
    accessToken({ obtain, ...about }) {
      tokensAsked += 1;
      return kept.accessToken({
        ...about,
        async obtain(...asked) {
          const grant = await obtain(...asked);
          granted.push(grant);
          return grant;
        },
      });
    },
  };
  const contextOf = (signal = AbortSignal.timeout(10_000)): PosContext<Settings> => {
    return { settings, now, signal, credentials, fetch: boundedFetch() };
  };
  const wait = (seconds: number) => (now = new Date(now.getTime() + seconds * 1000));
  return {
    pos,
    settings,
    contextOf,
    async create(order: CanonicalOrder): Promise<OrderRef> {
      try {
        return await provider.createOrder(order, contextOf());
      } catch (error) {
        throw withRefusals(error, pos);
      } finally {
        wait(PAUSE_S);
      }
    },
    wait,
    tokensAsked: () => tokensAsked,
    /** Oldest first. */
    granted,
  };
}

export function refusalsOf({ refusals }: Simulator): string {
  return `the simulator's refusals: ${refusals.join('; ') || 'none'}`;
}

/** The same error, with the simulator's refusals in its message. */
export function withRefusals(error: unknown, pos: Simulator): Error {
  if (!(error instanceof Error)) return new Error(`no Error was thrown but ${typeof error}; ${refusalsOf(pos)}`);
  error.cause ??= refusalsOf(pos);
  return error;
}
