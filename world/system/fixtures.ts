import type pg from 'pg';
import type { Config } from '../../src/config/config.ts';
import { statusAt } from '../../src/core/domain/lifecycle.ts';
import type { Provider, Registry } from '../../src/core/domain/provider.ts';
import type { AnswerLimits } from '../../src/http/webhook-routes.ts';
import { putLocation } from '../../src/core/locations/put-location.ts';
import { registry as ownProviders } from '../../src/providers/index.ts';
import { ALLOW_PRIVATE_HOSTS } from '../network/allowed-loopback.ts';

/** For tests whose subject is not how soon an answer comes. */
export const UNHURRIED: AnswerLimits = { answerMs: 30_000, commitMs: 20_000, perSecond: 100 };
/** Gives webhooks only half a second for as long as something takes. */
export async function hurried<Result>(action: () => Promise<Result>): Promise<Result> {
  const { answerMs } = UNHURRIED;
  UNHURRIED.answerMs = 500;
  return action().finally(() => (UNHURRIED.answerMs = answerMs));
}

export const PROJECT = 'test-project';
export const AUDIENCE = 'https://expediter.test/pubsub/push';
export const SERVICE_ACCOUNT = 'push@test-project.iam.gserviceaccount.com';

/** How signals come in and statuses go out: both by Pub/Sub, or both by HTTP. */
export const DOORS = ['pubsub', 'http'] as const;
export type Doors = (typeof DOORS)[number];

/** The environment that the services of all tests have in common, whatever their doors. */
const ANY_DOORS_ENV = {
  LOG_LEVEL: 'info',
  ORDER_API_TOKEN: 'platform-token',
  SETTINGS_KEY: `test:${Buffer.from('0123456789abcdefghijklmnopqrstuv').toString('base64')}`,
  ALLOW_PRIVATE_HOSTS,
  // Opening a connection costs Postgres some 25 ms of CPU, and planning the first statements costs as much again.
  POOL_SIZE: '5',
};
/** The same with Pub/Sub. */
export const SHARED_ENV = {
  ...ANY_DOORS_ENV,
  GOOGLE_CLOUD_PROJECT: PROJECT,
  PUSH_AUDIENCE: AUDIENCE,
  PUSH_SERVICE_ACCOUNT: SERVICE_ACCOUNT,
};
/** The same with HTTP. */
export const httpDoorsEnv = ({ url, secret }: { url: string; secret: string }) => ({
  ...ANY_DOORS_ENV,
  STATUS_WEBHOOK_URL: url,
  STATUS_WEBHOOK_SECRET: secret,
  PUBLIC_URL: 'https://expediter.test',
});

/** @returns our own providers and those of a test */
export function registryWith(providers: readonly Provider[] = []): Registry {
  return new Map([...ownProviders, ...providers.map((provider) => [provider.integration, provider] as const)]);
}

type Row = Record<string, unknown>;

/** Reads and writes a service's database. */
export type Fixtures = {
  /** As the owner. */
  query(sql: string, values?: unknown[]): Promise<Row[]>;
  addLocation(locationId: string, settings: object, integration?: string, name?: string): Promise<void>;
  /** Inserts an order as if it had been placed and sent, without a POS. */
  seedOrder(about: {
    serviceOrderId: string;
    locationId: string;
    providerOrderId?: string;
    fulfillment?: string;
    /** What was ordered, as the platform said it. */
    contents?: object;
  }): Promise<void>;
  placement(serviceOrderId: string): Promise<Row | undefined>;
  order(serviceOrderId: string): Promise<Row | undefined>;
};

/** @param about.pool of the processes' role */
export function fixturesOf(about: { pool: pg.Pool; ownerPool: pg.Pool; registry: Registry; config: Config }): Fixtures {
  const { pool, ownerPool, registry, config } = about;
  const query = async (sql: string, values: unknown[] = []): Promise<Row[]> =>
    (await ownerPool.query<Row>(sql, values)).rows;
  return {
    query,
    async addLocation(locationId, settings, integration = 'standard', name) {
      const whole = integration === 'standard' && !('secret' in settings) ? { ...settings, unsigned: true } : settings;
      await putLocation(
        pool,
        { registry, keys: config.SETTINGS_KEY, publicUrl: config.PUBLIC_URL, allowedHosts: config.ALLOW_PRIVATE_HOSTS },
        { locationId, integration, settings: whole, ...(name !== undefined && { name }) },
        { anyway: true },
      );
    },
    async seedOrder({ serviceOrderId, locationId, providerOrderId, fulfillment = 'pickup', contents }) {
      await query(
        `WITH p AS (
           INSERT INTO placements (service_order_id, location_id, state, deadline_at, provider_order_id, finished_at)
           VALUES ($1, $2, 'sent', now(), $3, now())
         ), i AS (
           INSERT INTO provider_orders (location_id, integration, provider_order_id, service_order_id)
           SELECT $2, 'standard', $3, $1 WHERE $3::text IS NOT NULL
         ), c AS (
           INSERT INTO order_contents (service_order_id, contents) SELECT $1, $5::jsonb WHERE $5::jsonb IS NOT NULL
         )
         INSERT INTO orders (service_order_id, call_out_code, location_id, integration, fulfillment, rank, sequence, provider_order_id)
         VALUES ($1, 'K472', $2, 'standard', $4, 10, 2, $3)`,
        [serviceOrderId, locationId, providerOrderId ?? null, fulfillment, contents ?? null],
      );
    },
    async placement(serviceOrderId) {
      return (await query('SELECT * FROM placements WHERE service_order_id = $1', [serviceOrderId]))[0];
    },
    async order(serviceOrderId) {
      const [row] = await query('SELECT * FROM orders WHERE service_order_id = $1', [serviceOrderId]);
      return row && { ...row, status: statusAt(Number(row['rank'])) };
    },
  };
}
