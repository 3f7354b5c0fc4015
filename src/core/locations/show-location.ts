import type { Pool } from 'pg';
import { z } from 'zod';
import { StoredPlacementCause } from '../domain/placement-cause.ts';
import { OLD_TOKEN_STATES } from '../domain/webhook-cause.ts';
import { describeSettings, ShownSetting } from './describe-settings.ts';
import { SHOWN_AVAILABILITY, ShownAvailability } from '../kitchens/settle-kitchens.ts';
import {
  canCancel,
  LOCATION_ROW,
  LocationRow,
  parseSettings,
  unsealSettings,
  withApplications,
  WrongLocation,
} from './locations.ts';
import { etagOf, LocationDetails, readConfigured, type ConfiguredRow } from './put-location.ts';
import type { SettingsKeys } from './settings-key.ts';
import type { Registry } from '../domain/provider.ts';
import { webhookPath } from '../domain/paths.ts';
import { Care, readCare } from '../cases/cases.ts';
import { readActionsAt, RecordedAction } from '../operators/read-audit.ts';
import type { Now } from '../postgres/database-clock.ts';
import { readGrant, ShownGrant } from './renew-connections.ts';
import { listTokens, stateOfToken, TOKEN_STATES, TokenRow } from './webhook-tokens.ts';

const STEPS = 12;
const STEP_S = 300;
/** Maximum number of refused webhooks that are counted for each location. */
const REFUSED_READ = 1_000;
const FiveMinutes = z.array(z.int().min(0)).length(STEPS);

/** Counts of the last hour also have what was repaired since. */
const OpenAtLocation = z
  .object({
    dropped: z.int().meta({
      description:
        'Dropped webhooks of the last 24 hours without a replay that had another outcome, counted up to 1,000.',
    }),
    replayedAt: z.date().nullable().meta({
      description: 'When one of the dropped webhooks of the last 24 hours was last replayed with another outcome.',
    }),
    unreported: z.int().meta({
      description:
        'Tickets of a location that has sent no webhook since the oldest of them, among its newest 50: see `silent` of the board.',
    }),
    unreportedSince: z
      .date()
      .nullable()
      .meta({ description: 'When the oldest of these tickets was sent. The location has sent no webhook since.' }),
    failing: z
      .object({ orders: z.int(), cause: StoredPlacementCause.nullable() })
      .nullable()
      .describe(
        'The newest orders of the last 24 hours that are held, failed, or tried again, and the cause of the newest. ' +
          'Null if a later order was sent, or if all were.',
      ),
    held: z.int().meta({ description: 'Orders on hold until something is fixed, also those before a sent one.' }),
  })
  .describe('What is still open.');
export type OpenAtLocation = z.infer<typeof OpenAtLocation>;

export const SeenLocation = LocationRow.extend({
  open: OpenAtLocation,
  paused: z.boolean(),
  phone: z.string().nullable().meta({ description: 'The first telephone number of its contacts.' }),
  kitchen: ShownAvailability,
  lastSeenAt: z
    .date()
    .nullable()
    .describe('When its last webhook came through this integration, accurate to ten seconds.'),
  notStored: z
    .int()
    .describe('Webhooks of today (UTC) dropped and not stored, beyond the daily quota; accurate to ten seconds.'),
  missedAt: z
    .date()
    .nullable()
    .describe('When a status poll last found more than the webhooks had reported: a webhook is missing.'),
  oldToken: z
    .object({
      webhooks: z.int().describe(`Stored webhooks (at most ${REFUSED_READ}), plus today's that were not stored.`),
      lastReceivedAt: z.date(),
      tokenId: z.string().meta({ description: 'The token of the last webhook.' }),
      state: z.enum(OLD_TOKEN_STATES).meta({ description: 'Why that token is not valid.' }),
    })
    .nullable()
    .describe(
      'Webhooks of the last 24 hours refused for a token that was once valid here, without a replay: its POS needs a new token.',
    ),
  webhooks: FiveMinutes.meta({ description: 'Webhooks of the last hour, in steps of five minutes, oldest first.' }),
  errors: FiveMinutes.describe('How many of `webhooks` were dropped, or refused as `unauthorized` or `not_committed`.'),
  refused: z.int().meta({ description: 'How many of the last ten minutes were refused.' }),
});
export type SeenLocation = z.infer<typeof SeenLocation>;

export const ListedLocations = z.object({ locations: z.array(SeenLocation) });

/** Lists locations, sorted by id, with their recent traffic. @param locations their ids; undefined for all */
export async function listSeenLocations(
  pool: Pool,
  locations?: readonly string[],
): Promise<WithoutOpen<SeenLocation>[]> {
  const { rows } = await pool.query<Row>({
    name: 'list-locations',
    text: LIST,
    values: [locations ?? null],
  });
  return rows.map(({ traffic, oldToken, ...row }) => {
    const steps = new Map(traffic.map((each) => [each.step, each]));
    const list = (of: 'webhooks' | 'errors'): number[] =>
      Array.from({ length: STEPS }, (_, step) => steps.get(step)?.[of] ?? 0);
    return {
      ...row,
      paused: row.pausedAt !== null,
      oldToken: oldToken && { ...oldToken, lastReceivedAt: new Date(oldToken.lastReceivedAt) },
      webhooks: list('webhooks'),
      errors: list('errors'),
      refused: traffic.reduce((sum, { refused }) => sum + refused, 0),
    };
  });
}

/** `withOpen` adds what is open. */
type WithoutOpen<Location extends SeenLocation> = Omit<Location, 'open'>;
type Row = Omit<SeenLocation, 'open' | 'paused' | 'oldToken' | 'webhooks' | 'errors' | 'refused'> & {
  oldToken: (Omit<NonNullable<SeenLocation['oldToken']>, 'lastReceivedAt'> & { lastReceivedAt: string }) | null;
  traffic: Step[];
};
type Step = { step: number; webhooks: number; errors: number; refused: number };

const LIST = `
  WITH span AS MATERIALIZED (
    SELECT date_bin('${STEP_S} s', now(), 'epoch') - interval '${STEP_S * (STEPS - 1)} s' AS since
  )
  SELECT ${LOCATION_ROW}, jsonb_path_query_first(l.contacts, '$[*].phone') #>> '{}' AS phone, ${SHOWN_AVAILABILITY} AS kitchen,
         h.last_seen_at AS "lastSeenAt", coalesce(d.not_stored, 0)::int AS "notStored", a.missed_at AS "missedAt", t.traffic,
         CASE WHEN o.webhooks > 0 THEN jsonb_build_object(
           'webhooks', o.webhooks + coalesce(r.not_stored, 0), 'lastReceivedAt', o.last, 'tokenId', o.cause ->> 'tokenId',
           'state', o.cause ->> 'state') END AS "oldToken"
  FROM span CROSS JOIN locations l
  LEFT JOIN location_last_seen h ON h.location_id = l.location_id AND h.integration = l.integration
  LEFT JOIN kitchens k ON k.location_id = l.location_id
  LEFT JOIN location_polls a ON a.location_id = l.location_id AND a.integration = l.integration
  LEFT JOIN dropped_bytes d ON d.location_id = l.location_id AND d.day = (now() AT TIME ZONE 'UTC')::date
  LEFT JOIN refused_bytes r ON r.location_id = l.location_id AND r.day = (now() AT TIME ZONE 'UTC')::date
  CROSS JOIN LATERAL (
    SELECT count(*) AS webhooks, max(received_at) AS last, (array_agg(cause ORDER BY received_at DESC))[1] AS cause
    FROM (SELECT w.received_at, w.cause FROM webhooks w
          WHERE w.location_id = l.location_id AND w.cause ->> 'code' = 'old_token'
            AND w.received_at > now() - interval '24 h' AND w.day >= (now() AT TIME ZONE 'UTC')::date - 1
            AND NOT EXISTS (SELECT FROM webhooks r WHERE r.replay_of = w.id AND r.day >= w.day AND r.outcome <> 'dropped')
          ORDER BY w.received_at DESC LIMIT ${REFUSED_READ}) AS w) AS o
  CROSS JOIN LATERAL (
    SELECT coalesce(json_agg(steps), '[]') AS traffic
    FROM (SELECT floor(extract(epoch FROM t.minute - span.since) / ${STEP_S})::int AS step, sum(t.count)::int AS webhooks,
                 coalesce(sum(t.count) FILTER (
                   WHERE t.outcome IN ('dropped', 'unauthorized', 'not_committed')), 0)::int AS errors,
                 coalesce(sum(t.count) FILTER (WHERE t.outcome IN ('unauthorized', 'not_committed')
                                                 AND t.minute > now() - interval '10 min'), 0)::int AS refused
          FROM traffic t
          WHERE t.location_id = l.location_id AND t.minute >= span.since AND t.what = 'webhook'
          GROUP BY step) AS steps) AS t
  WHERE $1::text[] IS NULL OR l.location_id = ANY ($1)
  ORDER BY l.location_id`;

/** One location with its tokens and its settings, without secrets. */
export const ShownLocation = SeenLocation.extend({
  contacts: LocationDetails.shape.contacts,
  settings: z.record(z.string(), ShownSetting).meta({ description: 'Values, and fingerprints of secrets.' }),
  settingsProblem: z.string().nullable().meta({ description: 'Why orders cannot be sent with these settings.' }),
  etag: z.string().meta({ description: 'For `If-Match`.' }),
  validTokens: z.int(),
  webhookUrl: z
    .string()
    .nullable()
    .describe('The URL that its POS calls, without the token. Null while PUBLIC_URL is unset.'),
  knows: z.object({
    check: z.boolean().meta({ description: '`check` can test its settings.' }),
    readStatus: z.boolean().meta({ description: "An order's status can be polled at its POS." }),
    cancel: z
      .boolean()
      .meta({ description: 'Its POS can be asked to cancel an order. Otherwise a person telephones.' }),
    menuOnly: z.boolean().meta({ description: 'Its POS takes only items of its menu: a test order needs one.' }),
    connect: z.boolean().meta({ description: '`expediter provider connect` can register our URL at its POS.' }),
  }),
  grant: ShownGrant.nullable().describe('The grant of access by its POS, if it has to be renewed. Otherwise null.'),
  tokens: z.array(TokenRow.omit({ locationId: true }).extend({ state: z.enum(TOKEN_STATES) })),
  actions: z
    .array(RecordedAction)
    .describe("Operators' actions at this location, done and refused: the newest 50, newest first."),
  ...Care,
}).meta({ id: 'ShownLocation' });

export type ShownLocation = z.infer<typeof ShownLocation>;

type ShowDeps = SettingsRulesOf & { pool: Pool; now: Now; readsOrders: boolean };
type SettingsRulesOf = { registry: Registry; publicUrl: string; keys: SettingsKeys };

/**
 * @param deps.readsOrders false if actions about orders and webhooks are left out
 * @returns undefined if there is no such location
 */
export async function showLocation(
  { pool, registry, publicUrl, keys, now, readsOrders }: ShowDeps,
  locationId: string,
): Promise<WithoutOpen<ShownLocation> | undefined> {
  const [found, configured, tokens, grant, actions, care] = await Promise.all([
    listSeenLocations(pool, [locationId]),
    readConfigured(pool, locationId),
    listTokens(pool, locationId),
    readGrant(pool, locationId),
    readActionsAt(pool, locationId),
    readCare(pool, { locationId }),
  ]);
  const [location] = found;
  if (location === undefined || configured === undefined) return undefined;
  const { integration } = location;
  const provider = registry.get(integration);
  const { canCancel: cancel = provider?.cancelOrder !== undefined, ...ofSettings } = await showSettings(
    { pool, registry, publicUrl, keys },
    locationId,
    configured,
  );
  const shown = tokens.map((token) => ({ ...token, state: stateOfToken(token, integration, now()) }));
  return {
    ...location,
    contacts: configured.contacts,
    ...ofSettings,
    etag: etagOf(configured),
    validTokens: shown.filter(({ state }) => state === 'valid').length,
    webhookUrl: publicUrl === '' ? null : `${publicUrl}${webhookPath(location)}`,
    knows: {
      check: provider?.check !== undefined,
      readStatus: provider?.readStatus !== undefined,
      cancel,
      menuOnly: provider?.menuOnly === true,
      connect: provider?.connect !== undefined,
    },
    grant,
    tokens: shown,
    ...care,
    // guard: actions-at-orders
    actions: actions.filter((each) => readsOrders || !isAboutOrders(each)),
  };
}

/** A replay of many webhooks names none of them, but says how many there were. */
function isAboutOrders({ serviceOrderId, webhookId, action }: RecordedAction): boolean {
  return serviceOrderId !== null || webhookId !== null || action === 'replay many';
}

async function showSettings(
  { pool, registry, publicUrl, keys }: Omit<ShowDeps, 'now' | 'readsOrders'>,
  locationId: string,
  { integration, sealedSettings }: ConfiguredRow,
): Promise<Pick<ShownLocation, 'settings' | 'settingsProblem'> & { canCancel?: boolean }> {
  let settings: unknown;
  try {
    settings = await unsealSettings({ keys }, locationId, sealedSettings);
  } catch (error) {
    return { settings: {}, settingsProblem: `settings cannot be decrypted: ${(error as Error).message}` };
  }
  const shown = describeSettings(keys, registry.get(integration), { locationId, settings });
  try {
    const rules = { registry, keys, publicUrl: publicUrl || undefined };
    const usable = parseSettings(await withApplications(pool, rules, [settings]), integration, settings);
    return { canCancel: canCancel(usable), settings: shown, settingsProblem: null };
  } catch (error) {
    if (!(error instanceof WrongLocation)) throw error;
    return { settings: shown, settingsProblem: error.message };
  }
}
