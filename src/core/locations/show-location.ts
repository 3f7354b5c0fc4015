import type { Pool } from 'pg';
import { z } from 'zod';
import type { Registry } from '../domain/provider.ts';
import { webhookPath } from '../domain/make-token.ts';
import { ToldAct, readActsAt } from '../operators/read-audit.ts';
import type { Now } from '../postgres/database-clock.ts';
import { SeenLocation, listSeenLocations } from './list-locations.ts';
import { ShownGrant, readGrant } from './renew-connections.ts';
import { TOKEN_STATES, TokenRow, listTokens, stateOfToken } from './webhook-tokens.ts';

/** One location with its tokens, without its settings. */
export const ShownLocation = SeenLocation.extend({
  webhookUrl: z
    .string()
    .nullable()
    .meta({ description: 'What its POS calls, without the token. Null while PUBLIC_URL is unset.' }),
  knows: z.object({
    check: z.boolean().meta({ description: 'Its settings can be tested, by `check`.' }),
    readStatus: z.boolean().meta({ description: 'Its POS can be asked about an order that is quiet.' }),
    connect: z.boolean().meta({ description: 'Its POS can be told our URL: `expediter provider connect`.' }),
  }),
  grant: ShownGrant.nullable().meta({
    description: 'What its POS granted for a time. Null where nothing that ends was granted yet.',
  }),
  tokens: z.array(TokenRow.omit({ locationId: true }).extend({ state: z.enum(TOKEN_STATES) })),
  acts: z
    .array(ToldAct)
    .meta({ description: 'What operators did there and were refused, newest first, the newest 50.' }),
}).meta({ id: 'ShownLocation' });

export type ShownLocation = z.infer<typeof ShownLocation>;

/** @returns undefined if there is no such location */
export async function showLocation(
  { pool, registry, publicUrl, now }: { pool: Pool; registry: Registry; publicUrl: string; now: Now },
  locationId: string,
): Promise<ShownLocation | undefined> {
  const [found, tokens, grant, acts] = await Promise.all([
    listSeenLocations(pool, [locationId]),
    listTokens(pool, locationId),
    readGrant(pool, locationId),
    readActsAt(pool, locationId),
  ]);
  const [location] = found;
  if (location === undefined) return undefined;
  const { integration } = location;
  const provider = registry.get(integration);
  return {
    ...location,
    webhookUrl: publicUrl === '' ? null : `${publicUrl}${webhookPath(location)}`,
    knows: {
      check: provider?.check !== undefined,
      readStatus: provider?.readStatus !== undefined,
      connect: provider?.connect !== undefined,
    },
    grant,
    tokens: tokens.map((token) => ({ ...token, state: stateOfToken(token, integration, now()) })),
    acts,
  };
}
