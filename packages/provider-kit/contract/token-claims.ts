import { expect } from 'vitest';
import { TryAgain } from '../../../src/core/domain/errors.ts';
import type { Credentials } from '../../../src/core/domain/provider.ts';
import { orderOf, type Claim, type Theatre } from './open-theatre.ts';
import type { Stage } from './open-stage.ts';

type About = Parameters<Credentials['accessToken']>[0];

/** Claims about tokens that expire. A POS without such tokens has none. */
export function tokenClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { provider, fixtures, stage, settingsWith } = theatre;
  const { unseeded = [] } = fixtures;

  claim('are stored, and renewed once they have expired', async () => {
    const at = await stage();
    await at.create(orderOf());
    if (at.tokensAsked() === 0) return;
    expect(at.pos.expireTokens, 'Simulator.expireTokens').toBeDefined();
    expect(at.pos.grants, 'Simulator.grants').toBe(1);
    await at.create(orderOf());
    expect(at.pos.grants, 'tokens are stored').toBe(1);
    at.pos.expireTokens?.();
    await at.create(orderOf());
    expect(at.pos.grants).toBe(2);
    expect(at.pos.tickets).toHaveLength(3);
  });

  claim('expire after as many seconds as the POS says', async () => {
    const at = await stage();
    await at.create(orderOf());
    if (at.tokensAsked() === 0) return;
    const [grant] = at.granted;
    const { tokenSeconds = 0 } = at.pos;
    expect(tokenSeconds, 'Simulator.tokenSeconds').toBeGreaterThan(0);
    // Some POS systems send the time of expiry instead.
    expect(Math.abs((grant?.expiresIn ?? 0) - tokenSeconds)).toBeLessThan(0.01 * tokenSeconds);
  });

  claim('have a seed that depends on every setting in the token request', async () => {
    const [at, elsewhere] = [await stage(), await stage()];
    const ours = await askedFor(at);
    if (ours === undefined) return;
    expect(ours.sent, 'no token was requested').not.toBe('');
    for (const [field, value] of Object.entries(elsewhere.pos.settings)) {
      if (unseeded.includes(field)) continue;
      const theirs = await askedFor(at, settingsWith(at, { [field]: value }));
      if (theirs?.sent !== ours.sent) expect(theirs?.seed, `seed, with another ${field}`).not.toEqual(ours.seed);
    }
  });

  claim('are requested with the signal of obtain, not of the order, because other orders wait for them', async () => {
    const at = await stage();
    const late = await asking(at, ({ obtain }) => obtain(undefined, AbortSignal.abort()));
    if (late === undefined) return;
    expect(late, "sent after obtain's signal").toBe('');
    const order = new AbortController();
    const alone = await asking(
      at,
      ({ obtain }) => {
        order.abort();
        return obtain(undefined, AbortSignal.timeout(10_000));
      },
      { ...at.contextOf(), signal: order.signal },
    );
    expect(alone, "not sent after the order's signal").not.toBe('');
  });

  claim('are renewed by renewConnection with the seed that grantSeed returns', async () => {
    if (provider.grantSeed === undefined) return;
    const at = await stage();
    const seeds: unknown[] = [];
    const credentials: Credentials = {
      async accessToken({ seed, obtain }) {
        seeds.push(seed);
        return (await obtain(undefined, AbortSignal.timeout(5_000))).accessToken;
      },
    };
    await provider.renewConnection?.({ ...at.contextOf(), credentials });
    expect(seeds).toEqual([provider.grantSeed(at.settings)]);
  });

  async function askedFor(at: Stage<Settings>, settings = at.settings) {
    let seed: About['seed'] = {};
    const ask = (about: About) => {
      ({ seed } = about);
      return about.obtain(undefined, AbortSignal.timeout(10_000));
    };
    const sent = await asking(at, ask, { ...at.contextOf(), settings });
    return sent === undefined ? undefined : { seed, sent };
  }

  /** Lets an order request a token from a POS that is down. @returns the request; undefined if there was none */
  async function asking(at: Stage<Settings>, ask: (about: About) => Promise<unknown>, context = at.contextOf()) {
    let asked = false;
    let sent = '';
    const down: typeof fetch = async (input, init) => {
      const request = new Request(input, init);
      request.signal.throwIfAborted();
      sent += `${request.method} ${request.url}\n${[...request.headers].join('\n')}\n${await request.text()}\n`;
      return new Response('{}', { status: 503 });
    };
    const credentials: Credentials = {
      async accessToken(about) {
        asked = true;
        await ask(about).catch(() => undefined);
        throw new TryAgain('there is no token', { sent: false });
      },
    };
    await provider.createOrder(orderOf(), { ...context, fetch: down, credentials }).catch(() => undefined);
    return asked ? sent : undefined;
  }
}
