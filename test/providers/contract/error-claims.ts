import { expect } from 'vitest';
import { GiveUp, NeedsOperator, TryAgain } from '../../../src/core/domain/errors.ts';
import { perhapsTaken } from '../../../src/core/domain/classify-error.ts';
import { orderOf, type Claim, type Theatre } from './open-theatre.ts';

/** What no error may repeat: the POS's own words, which may be about anything and quote anybody. */
const WORDS = 'Xanadu: "Lady Lovelace" is on our list of bad guests';

/** What becomes of an order that the POS does not take. */
export function errorClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { provider, fixtures, stage, failureOf, settingsWith } = theatre;
  const { secretSettings, identity = [], refusal } = fixtures;

  claim('saying that the order may be there when the POS hangs', async () => {
    const at = await stage();
    await at.create(orderOf()); // tokens and the like are not what hangs
    at.pos.behave = () => 'hang';
    const error = await failureOf(at, at.contextOf(AbortSignal.timeout(150)));
    expect(error).toMatchObject({ name: 'TryAgain', sent: true });
  });

  claim('unsent once the time is up', async () => {
    const at = await stage();
    const error = await failureOf(at, at.contextOf(AbortSignal.abort()));
    expect(error).toMatchObject({ name: 'TryAgain', sent: false });
    expect(at.pos.requests).toBe(0);
  });

  claim('for as long as Retry-After says on 429, and the whole location with it', async () => {
    const at = await stage();
    at.pos.behave = () => ({ status: 429, headers: { 'retry-after': '70' } });
    expect(await failureOf(at)).toMatchObject({ name: 'TryAgain', sent: false, retryAfterMs: 70_000 });
    at.pos.behave = undefined;
    const { requests } = at.pos;
    at.wait(30);
    expect(await failureOf(at)).toMatchObject({ name: 'TryAgain', sent: false, retryAfterMs: 40_000 });
    expect(at.pos.requests).toBe(requests);
    at.wait(40);
    await at.create(orderOf());
    expect(at.pos.tickets).toHaveLength(1);
  });

  claim('until Retry-After is over with new secrets, too: a limit is not counted by a secret', async () => {
    const [at, elsewhere] = [await stage(), await stage()];
    at.pos.behave = () => ({ status: 429, headers: { 'retry-after': '70' } });
    await failureOf(at);
    at.pos.behave = undefined;
    const credentials = { accessToken: async () => 'another token' };
    for (const name of secretSettings.filter((name) => !identity.includes(name))) {
      const settings = settingsWith(at, { [name]: elsewhere.pos.settings[name] });
      const error = await failureOf(at, { ...at.contextOf(), settings, credentials });
      expect(error, name).toMatchObject({ name: 'TryAgain', sent: false, retryAfterMs: 70_000 });
    }
  });

  // They prove nothing, as there are POS systems that take the order all the same. Where a repeat is harmless they need
  // not.
  for (const [status, taken] of [
    [500, !provider.deduplicates],
    [503, !provider.deduplicates],
    [502, true],
    [504, true],
  ] as const) {
    claim(`for now after ${status}, perhaps taken: ${taken}`, async () => {
      const at = await stage();
      at.pos.behave = () => ({ status });
      const error = await failureOf(at);
      expect(error).toBeInstanceOf(TryAgain);
      expect(perhapsTaken(error, provider), 'what the core makes of it').toBe(taken);
      expect(error, 'the core judges by the status').toMatchObject({ httpStatus: status });
    });
  }

  for (const status of [401, 403]) {
    claim(`until we have mended a ${status}`, async () => {
      const at = await stage();
      at.pos.behave = () => ({ status });
      expect(await failureOf(at)).toBeInstanceOf(NeedsOperator);
    });
  }

  for (const [name, body] of [
    ['nothing', ''],
    ['what is not JSON', '<html>'],
    ['what is not documented', { oops: [1, { deep: 'secret' }] }],
  ] as const) {
    claim(`for good or for us when refused with 400 and ${name}`, async () => {
      const at = await stage();
      at.pos.behave = () => ({ status: 400, body });
      const error = await failureOf(at);
      expect(error instanceof GiveUp || error instanceof NeedsOperator, String(error)).toBe(true);
      if (error instanceof GiveUp) expect(error.reason).toMatch(/^.{1,200}$/s);
    });
  }

  claim("in our own words: a refusal's are the POS's, and may quote the member", async () => {
    const at = await stage();
    at.pos.behave = () => refusal(WORDS);
    const error = await failureOf(at);
    const { message } = error;
    for (const text of [message, error instanceof GiveUp ? error.reason : '', JSON.stringify(error.cause)]) {
      expect(text).not.toMatch(/Xanadu|Lovelace|bad guests/);
    }
  });
}
