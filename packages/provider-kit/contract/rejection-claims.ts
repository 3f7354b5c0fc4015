import { expect } from 'vitest';
import { GiveUp } from '../../../src/core/domain/errors.ts';
import { orderOf, WEBHOOK_URL, type Claim, type Theatre } from './open-theatre.ts';

/** Percentage of rejections that need a specific code. */
const TYPED = 95;

/** Claims about the `reasonCode` of rejections. */
export function rejectionClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { provider, fixtures, stage, failureOf, ticketOf, received } = theatre;
  const rejections = Object.entries(fixtures.rejections ?? {});

  for (const [name, { by, reasonCode, itemIds }] of rejections) {
    claim(
      `have the reasonCode ${reasonCode} for ${name}${itemIds ? `, and the itemIds ${itemIds.join(', ')}` : ''}`,
      async () => {
        const at = await stage();
        let said: unknown;
        if (typeof by === 'string') {
          const ticket = await ticketOf(at, orderOf());
          [said] = provider.translateWebhook(received(at.pos.sign(WEBHOOK_URL, ticket, by)), at.settings);
          expect(said).toMatchObject({ status: expect.stringMatching(/^(failed|cancelled)$/) as string });
        } else {
          at.pos.behave = () => by;
          said = await failureOf(at);
          expect(said).toBeInstanceOf(GiveUp);
        }
        const { reasonCode: code, itemIds: ids } = said as GiveUp;
        expect({ code, ids }).toEqual({ code: reasonCode, ids: itemIds });
      },
    );
  }

  claim(`have a reasonCode other than "other" in at least ${TYPED} of 100 cases`, () => {
    const typed = rejections.filter(([, { reasonCode }]) => reasonCode !== 'other');
    expect(typed.length * 100).toBeGreaterThanOrEqual(rejections.length * TYPED);
  });
}
