import { hash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { Pool } from 'pg';
import { atMost } from '../domain/at-most.ts';
import { stopwatch, withTimeout } from '../domain/timing.ts';
import { classifyError } from '../domain/classify-error.ts';
import { NeedsOperator, TryAgain } from '../domain/errors.ts';
import { retryWrite } from '../postgres/transactions.ts';
import type { Credentials, Grant } from '../domain/provider.ts';
import { seal, unseal, type SettingsKeys } from './settings-key.ts';

/** Time limit for the POS to answer a token request. */
const OBTAIN_MS = 8_000;
/** Maximum time from the claim to the token request. If the machine was suspended for longer, it claims again. */
const BEGIN_WITHIN_MS = 5_000;
/** Duration of a claim in seconds: more than both times above and the write (10 s) together. */
const RENEWAL_S = 30;
/** Time for which an order waits for its token, shorter than its attempt, so that the order can still be sent. */
const WAIT_MS = 10_000;
const POLL_MS = 100;
/** A token is not used in the last seconds of its life: this many, or a tenth of its life if that is less. */
const SPARE_S = 60;
/** Age in seconds. If the POS rejects a younger token, the token is not renewed, because it cannot have expired. */
const YOUNG_S = 60;
/** Time for which a final refusal of the POS is cached, so that not every waiting order repeats the request. */
const REFUSED_FOR_MS = 25_000;
const CACHE_SIZE = 10_000;

type TokenRequest = Parameters<Credentials['accessToken']>[0];
/** Times are milliseconds of the process's monotonic clock. */
type Known = { accessToken: string; granted: number; until: number };
type StoredGrant = Pick<Grant, 'accessToken' | 'refreshToken'>;
/** `lifetime` is the token's whole life in seconds, `left` the rest of it, `age` the time since it was granted. */
type Row = { grant: string | null; generation: number; lifetime: number; left: number; age: number };

/**
 * Stores access and refresh tokens in Postgres. Only one process at a time renews a token, because many refresh tokens
 * can be used only once. If that process dies, the next one tries the same refresh token again. If the POS refuses it,
 * the dead process had used it, and the error has the cause `reconnect_needed`.
 */
export function credentialStore(pool: Pool, keys: SettingsKeys): (integration: string) => Credentials {
  const known = new LRUCache<string, Known>(atMost(CACHE_SIZE));
  const underWay = new Map<string, Promise<string>>();
  const refused = new LRUCache<string, NeedsOperator>({ ...atMost(CACHE_SIZE), ttl: REFUSED_FOR_MS, ttlResolution: 0 });
  /** Grants that Postgres does not have yet. They are the only copy: the POS accepts no earlier refresh token. */
  const unsaved = new Map<string, Grant & { generation: number; at: number }>();

  const cache = (
    key: string,
    accessToken: string,
    { lifetime, left, age }: Omit<Row, 'grant' | 'generation'>,
  ): string => {
    const now = performance.now();
    known.set(key, { accessToken, granted: now - age * 1000, until: now + (left - spareOf(lifetime)) * 1000 });
    return accessToken;
  };

  /** Reads a token that some process obtained and that is still valid. Undefined if a new one is needed. */
  const readGranted = async (
    key: string,
    row: Row,
    { rejected, maxAgeS = Infinity }: TokenRequest,
  ): Promise<string | undefined> => {
    if (row.left <= spareOf(row.lifetime) || row.age > maxAgeS) return undefined;
    const { accessToken } = (await open(key, row)) ?? {};
    if (accessToken === undefined || (accessToken === rejected && row.age > YOUNG_S)) return undefined;
    return cache(key, accessToken, row);
  };

  /** Decrypts a grant. Undefined if there is none, no key decrypts it, or it is encrypted for another row. */
  const open = async (key: string, { grant }: Row): Promise<StoredGrant | undefined> =>
    grant === null
      ? undefined
      : (unseal(keys, grant, placeOfGrant(key)) as Promise<StoredGrant>).catch(() => undefined);

  const nextGrant = async (key: string, row: Row, obtain: TokenRequest['obtain']): Promise<Grant & { at: number }> => {
    const left = unsaved.get(key);
    if (left?.generation === row.generation) return left;
    const last = await open(key, row);
    const grant = await obtain(last?.refreshToken, AbortSignal.timeout(OBTAIN_MS));
    const next = {
      ...grant,
      refreshToken: grant.refreshToken ?? last?.refreshToken,
      generation: row.generation,
      at: performance.now(),
    };
    unsaved.set(key, next);
    return next;
  };

  const renew = async (key: string, integration: string, request: TokenRequest): Promise<string> => {
    const giveUpAt = performance.now() + WAIT_MS;
    for (;;) {
      const sinceAsked = stopwatch();
      const renewer = randomUUID();
      const row = await claim(pool, key, integration, renewer);
      if (row === undefined) {
        const other = await read(pool, key);
        const granted = other && (await readGranted(key, other, request));
        if (granted !== undefined) return granted;
        await sleep(POLL_MS);
        if (performance.now() < giveUpAt) continue;
        throw new TryAgain('another process takes too long to renew the access token', { sent: false });
      }
      try {
        const granted = await readGranted(key, row, request);
        if (granted !== undefined) return granted;
        if (sinceAsked() > BEGIN_WITHIN_MS) continue;
        const grant = await nextGrant(key, row, request.obtain);
        const age = (performance.now() - grant.at) / 1000;
        const left = grant.expiresIn - age;
        const { accessToken, refreshToken, lastsS } = grant;
        const sealed = await seal(keys, { accessToken, refreshToken }, placeOfGrant(key));
        await retryWrite(() => store(pool, key, row.generation, sealed, left, lastsS));
        unsaved.delete(key);
        return cache(key, accessToken, { lifetime: grant.expiresIn, left, age });
      } finally {
        await release(pool, key, renewer);
      }
    }
  };

  return (integration) => ({
    async accessToken(request) {
      const key = keyOfGrant(integration, request.seed);
      const { rejected, maxAgeS = Infinity } = request;
      const held = known.get(key);
      const now = performance.now();
      if (
        held !== undefined &&
        held.until > now &&
        held.accessToken !== rejected &&
        now - held.granted <= maxAgeS * 1000
      ) {
        return held.accessToken;
      }
      // Early renewals have their own key, so that other callers neither wait for them nor get their refusals. So has
      // another proof: the vendor may take a new secret of the client at once.
      // guard: refused-for-its-proof
      const sought = `${keyOfGrant(integration, { ...request.seed, ...request.proof })} ${maxAgeS}`;
      const refusal = refused.get(sought);
      if (refusal !== undefined) throw refusal;
      // The renewal continues even if no caller waits for it any more.
      const renewal = underWay.get(sought) ?? renew(key, integration, request).finally(() => underWay.delete(sought));
      underWay.set(sought, renewal);
      try {
        return await withTimeout(WAIT_MS, () => renewal, lateToken);
      } catch (error) {
        if (error instanceof NeedsOperator) {
          refused.set(sought, error);
          throw error;
        }
        throw notSent(error);
      }
    },
  });
}

function spareOf(lifetime: number): number {
  return Math.min(SPARE_S, lifetime / 10);
}

const lateToken = (): TryAgain => new TryAgain('no access token in time', { sent: false });

/**
 * Converts an error of the token request to an error of the order, which was certainly not sent. The HTTP status of a
 * server error is only in the cause. If the order's error had it, that would mean that the POS may have the order.
 */
function notSent(error: unknown): TryAgain {
  if (!(error instanceof TryAgain)) {
    return new TryAgain(`no access token: unexpected ${error instanceof Error ? error.name : typeof error}`, {
      sent: false,
    });
  }
  const { message, retryAfterMs, httpStatus } = error;
  const { cause } = classifyError(error);
  return new TryAgain(message, { sent: false, retryAfterMs, cause, ...(httpStatus === 429 && { httpStatus }) });
}

/** The place that a grant is encrypted for. @param key see `keyOfGrant` */
export function placeOfGrant(key: string): string {
  // guard: grant-of-its-settings
  return `credentials/${key}`;
}

/** The key of a grant: the SHA-256 of its integration and seed, in hex. */
export function keyOfGrant(integration: string, seed: TokenRequest['seed']): string {
  const sorted = Object.entries(seed).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return hash('sha256', JSON.stringify([integration, sorted]));
}

const ROW = `"grant", generation,
  coalesce(extract(epoch FROM expires_at - granted_at), 0)::float8 AS lifetime,
  coalesce(extract(epoch FROM expires_at - clock_timestamp()), 0)::float8 AS left,
  coalesce(extract(epoch FROM clock_timestamp() - granted_at), 0)::float8 AS age`;

async function read(pool: Pool, key: string): Promise<Row | undefined> {
  const { rows } = await pool.query<Row>(`SELECT ${ROW} FROM credentials WHERE seed_sha256 = decode($1, 'hex')`, [key]);
  return rows[0];
}

/** Claims a token's renewal. @returns the row, or undefined while another process renews the token */
async function claim(pool: Pool, key: string, integration: string, renewer: string): Promise<Row | undefined> {
  const { rows } = await pool.query<Row>(
    `INSERT INTO credentials AS c (seed_sha256, integration, renewer, renewing_until)
     VALUES (decode($1, 'hex'), $2, $3, now() + make_interval(secs => ${RENEWAL_S}))
     ON CONFLICT (seed_sha256) DO UPDATE
       SET renewer = excluded.renewer, renewing_until = excluded.renewing_until
       WHERE c.renewing_until IS NULL OR c.renewing_until < now()
     RETURNING ${ROW}`,
    [key, integration, renewer],
  );
  return rows[0];
}

/** Stores a grant, unless another process stored a newer one while this process was suspended. */
async function store(
  pool: Pool,
  key: string,
  generation: number,
  sealed: string,
  seconds: number,
  lastsS: number | undefined,
): Promise<void> {
  await pool.query(
    `UPDATE credentials
     SET "grant" = $3, generation = generation + 1, granted_at = clock_timestamp(),
         expires_at = clock_timestamp() + make_interval(secs => $4), lasts_s = $5::integer
     WHERE seed_sha256 = decode($1, 'hex') AND generation = $2`,
    [key, generation, sealed, seconds, lastsS === undefined ? null : Math.round(lastsS)],
  );
}

/** Releases the claim. Errors are ignored, because the claim also expires. */
async function release(pool: Pool, key: string, renewer: string): Promise<void> {
  await pool
    .query(
      `UPDATE credentials SET renewer = NULL, renewing_until = NULL
       WHERE seed_sha256 = decode($1, 'hex') AND renewer = $2`,
      [key, renewer],
    )
    .catch(() => {});
}
