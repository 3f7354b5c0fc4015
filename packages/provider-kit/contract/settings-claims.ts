import { expect } from 'vitest';
import { z } from 'zod';
import { isAttemptLimit } from '../../../src/core/domain/timing.ts';
import { NotAuthentic } from '../../../src/core/domain/errors.ts';
import { CREDENTIAL_HEADERS } from '../../../src/core/domain/webhook.ts';
import { WebhookAuth } from '../../../src/core/domain/webhook-auth.ts';
import { WEBHOOK_URL, type Claim, type Theatre } from './open-theatre.ts';

const NO_SETTINGS = {
  undefined,
  null: null,
  'a number': 1,
  'a text': 'junk',
  'a list': [],
  'an object without fields': {},
};

/** Claims about a provider's properties and settings. */
export function settingsClaims<Settings>(theatre: Theatre<Settings>, claim: Claim): void {
  const { provider, fixtures, webhookAuth, said, stage, ticketOf, received, settingsWith } = theatre;
  const { wrongSettings, secretSettings, identity = [] } = fixtures;

  claim('the integration name fits a URL', () => {
    expect(provider.integration).toMatch(/^[a-z0-9][a-z0-9-]*$/);
  });

  claim('attemptWithinS is more than 0 and at most 120', () => {
    expect(isAttemptLimit(provider.attemptWithinS ?? 1), 'attemptWithinS: more than 0, 120 at the most').toBe(true);
  });

  claim('deduplicatesForS is set only with deduplicates', () => {
    if (provider.deduplicatesForS === undefined) return;
    expect(provider.deduplicates, 'deduplicates').toBe(true);
    expect(provider.deduplicatesForS, 'at least half an hour, the usual time of an order').toBeGreaterThanOrEqual(1800);
  });

  claim('the schema accepts valid settings, and its own result again', async () => {
    const { settings } = await stage();
    expect(provider.settings.parse(settings)).toEqual(settings);
  });

  for (const [name, junk] of Object.entries(NO_SETTINGS)) {
    claim(`the schema refuses ${name} as settings`, () => {
      expect(provider.settings.safeParse(junk).success).toBe(false);
    });
  }

  claim(
    'the schema refuses an unknown field, because a mistyped "secret" would leave webhooks unverified',
    async () => {
      const { pos } = await stage();
      expect(provider.settings.safeParse({ ...pos.settings, unheardOf: true }).success).toBe(false);
    },
  );

  for (const [field, values] of Object.entries(wrongSettings)) {
    for (const value of values) {
      claim(`the schema refuses ${field} ${JSON.stringify(value)} and names the field`, async () => {
        const { pos } = await stage();
        const result = provider.settings.safeParse({ ...pos.settings, [field]: value });
        expect(result.error?.issues.map((issue) => String(issue.path[0]))).toContain(field);
      });
    }
  }

  claim('the settings have a JSON schema', () => {
    expect(z.toJSONSchema(provider.settings, { io: 'input', unrepresentable: 'any' })).toMatchObject({
      type: 'object',
    });
  });

  claim('another restaurant has a different account', async () => {
    expect(provider.account, 'account').toBeDefined();
    const [at, elsewhere] = [await stage(), await stage()];
    const ours = provider.account?.(at.settings);
    expect(provider.account?.(elsewhere.settings)).not.toBe(ours);
    // At the same vendor all restaurants share one URL, so ids must distinguish them.
    const ids = Object.entries(elsewhere.pos.settings).filter(([name, value]) => {
      const isUrl = typeof value === 'string' && value.startsWith(elsewhere.pos.url);
      return !isUrl && !secretSettings.includes(name) && isOther(value, at.pos.settings[name]);
    });
    if (ids.length === 0) return;
    expect(provider.account?.(settingsWith(at, Object.fromEntries(ids))), 'with its ids').not.toBe(ours);
  });

  claim('the account stays the same with new secrets', async () => {
    const [at, elsewhere] = [await stage(), await stage()];
    for (const name of secretSettings.filter((name) => !identity.includes(name))) {
      const renewed = settingsWith(at, { [name]: elsewhere.pos.settings[name] });
      expect(provider.account?.(renewed), name).toBe(provider.account?.(at.settings));
    }
  });

  claim('webhookAuth has a known form', () => {
    expect(WebhookAuth.parse(webhookAuth)).toEqual(webhookAuth);
  });

  claim('the settings have all fields that webhookAuth names', () => {
    const { settings, previousSetting, urlSetting } = webhookAuth;
    const named = [...settings, previousSetting, urlSetting].filter((name) => name !== undefined);
    const schema = z.toJSONSchema(provider.settings, { io: 'input', unrepresentable: 'any' });
    expect(Object.keys(schema.properties ?? {})).toEqual(expect.arrayContaining(named));
  });

  claim('webhookHeaders are in lower case, without credentials, because they are stored unencrypted', () => {
    const { webhookHeaders = [] } = provider;
    for (const name of webhookHeaders) expect(name).toMatch(/^[a-z0-9-]+$/);
    expect(webhookHeaders.filter((name) => [webhookAuth.header, ...CREDENTIAL_HEADERS].includes(name))).toEqual([]);
  });

  claim('webhookAuth has byConnect only if the provider has connect', () => {
    if (webhookAuth.byConnect === true) expect(provider.connect).toBeDefined();
  });

  claim('without its settings, unsigned webhooks pass only if webhookAuth is optional', async () => {
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
