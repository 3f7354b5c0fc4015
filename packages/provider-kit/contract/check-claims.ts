import { expect } from 'vitest';
import { NeedsOperator, TryAgain } from '../../../src/core/domain/errors.ts';
import { rejectionOf } from './error-of.ts';
import { orderOf, WEBHOOK_URL, type Claim, type Theatre } from './open-theatre.ts';
import type { Stage } from './open-stage.ts';

/** Claims about `check`. */
export function checkClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { provider, fixtures, stage, expectNoSecrets, settingsWith } = theatre;
  const { provenSettings = [] } = fixtures;

  if (provider.check === undefined) {
    claim('is not implemented, so provenSettings is empty', () => {
      expect(provenSettings, 'provenSettings').toEqual([]);
    });
    return;
  }

  claim('passes with the right settings and makes no ticket', async () => {
    const at = await stage();
    await provider.connect?.({ ...at.contextOf(), webhookUrl: WEBHOOK_URL, locations: 1 });
    await provider.check?.(at.contextOf());
    await provider.check?.(at.contextOf());
    expect(at.pos.requests, 'requests for a ticket').toBe(0);
    expect(at.pos.refusals).toEqual([]);
    await at.create(orderOf());
    expect(at.pos.tickets).toHaveLength(1);
  });

  claim('has at least one setting in provenSettings', () => {
    expect(provenSettings, 'provenSettings').not.toEqual([]);
  });

  for (const field of provenSettings) {
    claim(`throws NeedsOperator that names ${field} if it is wrong, and shows no secret`, async () => {
      const [at, elsewhere] = [await stage(), await stage()];
      const wrong = elsewhere.pos.settings[field];
      expect(wrong, "another POS's is another").not.toEqual(at.pos.settings[field]);
      const error = await failureOf(at, { ...at.contextOf(), settings: settingsWith(at, { [field]: wrong }) });
      expect(error).toBeInstanceOf(NeedsOperator);
      expect(error.message).toContain(field);
      expectNoSecrets(elsewhere.pos, error);
    });
  }

  claim('throws NeedsOperator after the POS refuses the credentials, although a stored token is left', async () => {
    const at = await stage();
    await provider.connect?.({ ...at.contextOf(), webhookUrl: WEBHOOK_URL, locations: 1 });
    await provider.check?.(at.contextOf());
    const revoked: typeof fetch = async () => new Response('{}', { status: 401 });
    expect(await failureOf(at, { ...at.contextOf(), fetch: revoked })).toBeInstanceOf(NeedsOperator);
  });

  claim('throws TryAgain when the POS is down', async () => {
    const at = await stage();
    await at.pos.stop();
    expect(await failureOf(at)).toBeInstanceOf(TryAgain);
  });

  async function failureOf(at: Stage<Settings>, context = at.contextOf()): Promise<Error> {
    const error = await rejectionOf(provider.check?.(context));
    expectNoSecrets(at.pos, error);
    return error;
  }
}
