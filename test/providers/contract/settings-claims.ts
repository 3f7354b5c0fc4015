import { expect } from 'vitest';
import { z } from 'zod';
import { isAttemptLimit } from '../../../src/core/domain/timing.ts';
import { NotAuthentic } from '../../../src/core/domain/errors.ts';
import { CREDENTIAL_HEADERS } from '../../../src/core/domain/webhook.ts';
import { WebhookAuth } from '../../../src/core/domain/webhook-auth.ts';
import { WEBHOOK_URL, type Claim, type Theatre } from './open-theatre.ts';

const NO_SETTINGS = { nothing: undefined, null: null, number: 1, text: 'junk', list: [], 'no field': {} };

/** What a provider says of itself and of its settings. */
export function settingsClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { provider, fixtures, webhookAuth, said, stage, ticketOf, received, settingsWith } = theatre;
  const { wrongSettings, secretSettings, identity = [] } = fixtures;

  claim('of a name that fits a URL', () => {
    expect(provider.integration).toMatch(/^[a-z0-9][a-z0-9-]*$/);
  });

  claim('an attempt ends before an order has waited for too long', () => {
    expect(isAttemptLimit(provider.attemptWithinS ?? 1), 'attemptWithinS: more than 0, 120 at the most').toBe(true);
  });

  claim('for how long a repeat is recognised is said only where it is', () => {
    if (provider.deduplicatesForS === undefined) return;
    expect(provider.deduplicates, 'deduplicates').toBe(true);
    expect(provider.deduplicatesForS, 'at least an order’s usual time, half an hour').toBeGreaterThanOrEqual(1800);
  });

  claim('are taken, and again what was made of them', async () => {
    const { settings } = await stage();
    expect(provider.settings.parse(settings)).toEqual(settings);
  });

  for (const [name, junk] of Object.entries(NO_SETTINGS)) {
    claim(`are refused as ${name}`, () => {
      expect(provider.settings.safeParse(junk).success).toBe(false);
    });
  }

  claim('with an unknown field are refused: mistyped, a "secret" would leave webhooks unverified', async () => {
    const { pos } = await stage();
    expect(provider.settings.safeParse({ ...pos.settings, unheardOf: true }).success).toBe(false);
  });

  for (const [field, values] of Object.entries(wrongSettings)) {
    for (const value of values) {
      claim(`name the field that is wrong: ${field} ${JSON.stringify(value)}`, async () => {
        const { pos } = await stage();
        const result = provider.settings.safeParse({ ...pos.settings, [field]: value });
        expect(result.error?.issues.map((issue) => String(issue.path[0]))).toContain(field);
      });
    }
  }

  claim('can be described', () => {
    expect(z.toJSONSchema(provider.settings, { io: 'input', unrepresentable: 'any' })).toMatchObject({
      type: 'object',
    });
  });

  claim('lead to an account, another one for another restaurant', async () => {
    expect(provider.account, 'account').toBeDefined();
    const [at, elsewhere] = [await stage(), await stage()];
    const ours = provider.account?.(at.settings);
    expect(provider.account?.(elsewhere.settings)).not.toBe(ours);
    // At the same vendor, whose URL is every restaurant's, it is told by ids of its own.
    const ids = Object.entries(elsewhere.pos.settings).filter(([name, value]) => {
      const isUrl = typeof value === 'string' && value.startsWith(elsewhere.pos.url);
      return !isUrl && !secretSettings.includes(name) && isOther(value, at.pos.settings[name]);
    });
    if (ids.length === 0) return;
    expect(provider.account?.(settingsWith(at, Object.fromEntries(ids))), 'with its ids').not.toBe(ours);
  });

  claim('lead to the same account with new secrets: an order in doubt goes on there', async () => {
    const [at, elsewhere] = [await stage(), await stage()];
    for (const name of secretSettings.filter((name) => !identity.includes(name))) {
      const renewed = settingsWith(at, { [name]: elsewhere.pos.settings[name] });
      expect(provider.account?.(renewed), name).toBe(provider.account?.(at.settings));
    }
  });

  claim('webhookAuth is of a form that operators are told', () => {
    expect(WebhookAuth.parse(webhookAuth)).toEqual(webhookAuth);
  });

  claim('webhookAuth names fields that the settings have', () => {
    const { settings, previousSetting, urlSetting } = webhookAuth;
    const named = [...settings, previousSetting, urlSetting].filter((name) => name !== undefined);
    const schema = z.toJSONSchema(provider.settings, { io: 'input', unrepresentable: 'any' });
    expect(Object.keys(schema.properties ?? {})).toEqual(expect.arrayContaining(named));
  });

  claim('webhookHeaders are stored in clear: lower case, none of credentials, and not that of webhookAuth', () => {
    const { webhookHeaders = [] } = provider;
    for (const name of webhookHeaders) expect(name).toMatch(/^[a-z0-9-]+$/);
    expect(webhookHeaders.filter((name) => [webhookAuth.header, ...CREDENTIAL_HEADERS].includes(name))).toEqual([]);
  });

  claim('webhookAuth counts on connect only where there is one', () => {
    if (webhookAuth.byConnect === true) expect(provider.connect).toBeDefined();
  });

  claim('webhookAuth is optional where nothing is verified without those settings', async () => {
    const at = await stage();
    const ticket = await ticketOf(at, { type: said.fulfillment });
    const { headers, body } = at.pos.sign(WEBHOOK_URL, ticket, said.native);
    const { [webhookAuth.header]: _left, ...unsigned } = headers;
    const { settings, previousSetting = '', optional = false } = webhookAuth;
    const kept = Object.entries(at.pos.settings).filter(([name]) => ![...settings, previousSetting].includes(name));
    const without = provider.settings.safeParse(Object.fromEntries(kept));
    const passes = (): unknown =>
      provider.translateWebhook(received({ headers: unsigned, body }), without.data as Settings);
    if (optional) expect(passes()).toHaveLength(1);
    else if (without.success) expect(passes).toThrow(NotAuthentic);
  });
}

function isOther(value: unknown, ours: unknown): boolean {
  return typeof value === 'string' && value !== ours;
}
