import { expect } from 'vitest';
import { GiveUp, NeedsOperator, TryAgain } from '../../../src/core/domain/errors.ts';
import { perhapsTaken } from '../../../src/core/domain/classify-error.ts';
import { orderOf, type Claim, type Theatre } from './open-theatre.ts';

/** A POS's free text, which no error may repeat: it may quote the member. */
const WORDS = 'Xanadu: "Lady Lovelace" is on our list of bad guests';

/** Claims about an order that the POS does not take. */
export function errorClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  waitClaims(theatre, claim);
  refusalClaims(theatre, claim);
}

/** Answers that do not come, or not yet. */
function waitClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { stage, failureOf, settingsWith, fixtures } = theatre;
  const { secretSettings, identity = [] } = fixtures;

  claim('with TryAgain and sent: true when the POS hangs', async () => {
    const at = await stage();
    await at.create(orderOf()); // tokens and the like are not what hangs
    const limit = new AbortController();
    at.pos.behave = () => {
      // The time limit ends when the POS has the request, however slow this machine is.
      setTimeout(() => limit.abort(new DOMException('the time limit', 'TimeoutError')));
      return 'hang';
    };
    const error = await failureOf(at, at.contextOf(limit.signal));
    expect(error).toMatchObject({ name: 'TryAgain', sent: true });
  });

  claim('with TryAgain and sent: false after the time limit', async () => {
    const at = await stage();
    const error = await failureOf(at, at.contextOf(AbortSignal.abort()));
    expect(error).toMatchObject({ name: 'TryAgain', sent: false });
    expect(at.pos.requests).toBe(0);
  });

  claim('with TryAgain for all orders of the location until the Retry-After of a 429 is over', async () => {
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

  claim('with TryAgain until the Retry-After of a 429 is over, even with new secrets', async () => {
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
}

/** Answers that are no ticket. */
function refusalClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { stage, failureOf, fixtures } = theatre;

  // These statuses prove nothing: some POS systems take the order anyway.
  for (const status of [500, 502, 503, 504]) {
    claim(`with TryAgain after ${status}, because the POS may have the order`, async () => {
      const at = await stage();
      at.pos.behave = () => ({ status });
      const error = await failureOf(at);
      expect(error).toBeInstanceOf(TryAgain);
      expect(perhapsTaken(error), 'what the core makes of it').toBe(true);
      expect(error, 'the core decides by the status').toMatchObject({ httpStatus: status });
    });
  }

  for (const status of [401, 403]) {
    claim(`with NeedsOperator after ${status}`, async () => {
      const at = await stage();
      at.pos.behave = () => ({ status });
      expect(await failureOf(at)).toBeInstanceOf(NeedsOperator);
    });
  }

  // Answers of nginx, Vercel and Cloudflare, and of pages that ask for a log-in: the POS has not said anything.
  for (const [status, body] of [
    [400, '<html><body>The plain HTTP request was sent to HTTPS port</body></html>'],
    [402, 'Payment required'],
    [404, '<!doctype html><title>Not found</title>'],
    [413, ''],
    [421, ''],
    [422, 'upstream refused'],
    [426, ''],
    [451, ''],
    [400, { oops: [1, { deep: 'secret' }] }],
  ] as const) {
    claim(`with NeedsOperator after a gateway's ${status} with ${JSON.stringify(body)}`, async () => {
      const at = await stage();
      at.pos.behave = () => ({ status, body });
      expect(await failureOf(at)).toBeInstanceOf(NeedsOperator);
    });
  }
  for (const status of [423, 425]) {
    claim(`with TryAgain and sent: false after ${status}`, async () => {
      const at = await stage();
      at.pos.behave = () => ({ status });
      expect(await failureOf(at)).toMatchObject({ name: 'TryAgain', sent: false });
    });
  }
  for (const [status, body] of [
    [200, '<html><form action="/login"></form></html>'],
    [409, 'error code: 1001'],
  ] as const) {
    claim(`with TryAgain after ${status} with ${body}, because the POS may have the order`, async () => {
      const at = await stage();
      await at.create(orderOf()); // tokens and the like are not what a gateway answers for
      at.pos.behave = () => ({ status, body });
      const error = await failureOf(at);
      expect(error).toBeInstanceOf(TryAgain);
      expect(perhapsTaken(error)).toBe(true);
    });
  }

  claim('with GiveUp or NeedsOperator after 400 with an empty body', async () => {
    const at = await stage();
    at.pos.behave = () => ({ status: 400, body: '' });
    const error = await failureOf(at);
    expect(error instanceof GiveUp || error instanceof NeedsOperator, String(error)).toBe(true);
    if (error instanceof GiveUp) expect(error.reason).toMatch(/^.{1,200}$/s);
  });

  claim("without the POS's own message, which may quote the member", async () => {
    const at = await stage();
    at.pos.behave = () => fixtures.refusal(WORDS);
    const error = await failureOf(at);
    const { message } = error;
    for (const text of [message, error instanceof GiveUp ? error.reason : '', JSON.stringify(error.cause)]) {
      expect(text).not.toMatch(/Xanadu|Lovelace|bad guests/);
    }
  });
}
