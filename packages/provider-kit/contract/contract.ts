import * as vitest from 'vitest';
import type { Provider } from '../../../src/core/domain/provider.ts';
import { cancelClaims } from './cancel-claims.ts';
import { checkClaims } from './check-claims.ts';
import { errorClaims } from './error-claims.ts';
import { estimateClaims } from './estimate-claims.ts';
import { openTheatre, type Claim } from './open-theatre.ts';
import { kitchenClaims } from './kitchen-claims.ts';
import type { ProviderFixtures } from './provider-fixtures.ts';
import { readClaims } from './read-claims.ts';
import { rejectionClaims } from './rejection-claims.ts';
import { repeatClaims } from './repeat-claims.ts';
import { settingsClaims } from './settings-claims.ts';
import { ticketClaims } from './ticket-claims.ts';
import { tokenClaims } from './token-claims.ts';
import { webhookClaims } from './webhook-claims.ts';

export { errorOf, rejectionOf } from './error-of.ts';

/** Declares tests: Vitest, or a test of the suite itself, which runs single claims. */
export type Runner = {
  describe: (name: string, body: () => void) => void;
  it: Claim;
};

/** The contract suite: what the core relies on for every POS. */
export function providerContract<Settings>(
  provider: Provider<Settings>,
  fixtures: ProviderFixtures,
  { describe, it }: Runner = vitest,
): void {
  const theatre = openTheatre(provider, fixtures);
  const claim: Claim = (name, body) =>
    it(name, async () => {
      try {
        await body();
      } finally {
        await theatre.close();
      }
    });

  describe(`the provider contract: ${provider.integration}`, () => {
    describe('properties and settings', () => settingsClaims(theatre, claim));
    describe('createOrder writes', () => ticketClaims(theatre, claim));
    describe('repeats of createOrder', () => repeatClaims(theatre, claim));
    describe('createOrder fails', () => errorClaims(theatre, claim));
    if (provider.cancelOrder) describe('cancelOrder', () => cancelClaims(theatre, claim));
    if (fixtures.rejections) describe('rejections', () => rejectionClaims(theatre, claim));
    describe('tokens', () => tokenClaims(theatre, claim));
    describe('check', () => checkClaims(theatre, claim));
    if (provider.readStatus) describe('readStatus', () => readClaims(theatre, claim));
    describe('translateWebhook', () => webhookClaims(theatre, claim));
    if (provider.readKitchen) describe('readKitchen', () => kitchenClaims(theatre, claim));
    const { estimates } = fixtures;
    if (estimates) describe('estimates', () => estimateClaims(theatre, claim, estimates));
  });
}
