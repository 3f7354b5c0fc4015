import type { Pool } from 'pg';
import type { Log } from '../domain/log.ts';
import { stopwatch } from '../domain/timing.ts';
import type { Now } from '../postgres/database-clock.ts';
import {
  LISTED_TOKEN,
  readChangedTokens,
  databaseTime,
  type ChangedToken,
  type ListedToken,
} from './changed-tokens.ts';
import { digest } from '../domain/make-token.ts';

export type TokenList = {
  /** Reads all valid tokens. @throws while Postgres cannot be reached */
  load(): Promise<void>;
  /**
   * Reads the changes. Reads all tokens if there are many changes, before the first load, and once an hour (for rows
   * deleted by hand). Call it every few seconds. @throws like `load`
   */
  refresh(): Promise<void>;
  /** The token as last read. Undefined if it is not listed or has expired, or if the last read is older than `ageS`. */
  find(token: string): ListedToken | undefined;
  size(): number;
};

/** Tokens per page: so few that a page occupies neither Postgres nor the event loop for long. */
const PAGE = 500;
/** Maximum number of tokens in the list: some 150 MB. */
const MOST = 500_000;
const LOAD_AFTER_MS = 3_600_000;

/**
 * Holds the valid tokens in memory, to authenticate webhooks while Postgres is unavailable.
 * @param about.ageS the seconds for which a read is valid. The time for which the machine is suspended counts too
 */
export function tokenList(pool: Pool, about: { ageS: number; now: Now; log: Pick<Log, 'warn'> }): TokenList {
  const listed = new Map<string, ListedToken & { seenBy: number }>();
  const integrations = new Map<string, string>();
  /** When the last read started: `mark` by Postgres's clock, `agoMs` as the time since then. */
  let read: { mark: number; agoMs: () => number } | undefined;
  let loadedMsAgo: (() => number) | undefined;
  let loads = 0;

  /** @returns false if the list is full */
  const list = ({ sha256, tokenId, integration, locationId, expiresAt }: ChangedToken): boolean => {
    if (listed.size >= MOST && !listed.has(sha256)) return false;
    const known = integrations.get(integration);
    if (known === undefined) integrations.set(integration, integration);
    listed.set(sha256, { tokenId, integration: known ?? integration, locationId, expiresAt, seenBy: loads });
    return true;
  };

  const load = async (): Promise<void> => {
    const agoMs = stopwatch();
    const mark = await databaseTime(pool);
    loads += 1;
    let leftOut = 0;
    // The list is updated in place, because a second list would take as much memory again.
    for await (const rows of readInPages(pool)) {
      for (const row of rows) if (!list(row)) leftOut += 1;
    }
    for (const [sha256, { seenBy }] of listed) if (seenBy < loads) listed.delete(sha256);
    if (leftOut > 0) {
      about.log.warn(
        { listed: listed.size, leftOut },
        'more tokens are valid than memory holds: while Postgres is away, webhooks with the other tokens get 500',
      );
    }
    read = { mark, agoMs };
    loadedMsAgo = agoMs;
  };

  const refresh = async (): Promise<void> => {
    if (read === undefined || loadedMsAgo === undefined || loadedMsAgo() > LOAD_AFTER_MS) return load();
    const agoMs = stopwatch();
    const { mark, changed } = await readChangedTokens(pool, read.mark);
    if (changed === undefined) return load();
    for (const row of changed) {
      if (!row.isValid) listed.delete(row.sha256);
      else list(row);
    }
    read = { mark, agoMs };
  };

  let turn = Promise.resolve();
  const inTurn = (work: () => Promise<void>) => (): Promise<void> => (turn = turn.then(work, work));

  return {
    load: inTurn(load),
    refresh: inTurn(refresh),
    find(token) {
      if (read === undefined || read.agoMs() > about.ageS * 1_000) return undefined;
      const found = listed.get(digest(token));
      if (found === undefined) return undefined;
      const { tokenId, integration, locationId, expiresAt } = found;
      if (expiresAt !== null && expiresAt <= about.now().getTime()) return undefined;
      return { tokenId, integration, locationId, expiresAt };
    },
    size: () => listed.size,
  };
}

const VALID = `
  SELECT encode(t.sha256, 'base64') AS sha256, ${LISTED_TOKEN}, true AS "isValid"
  FROM webhook_tokens t JOIN locations l USING (location_id, integration)
  WHERE t.sha256 > decode($1, 'base64') AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
  ORDER BY t.sha256 LIMIT $2`;

async function* readInPages(pool: Pool): AsyncGenerator<ChangedToken[]> {
  let after = '';
  for (;;) {
    const { rows } = await pool.query<ChangedToken>(VALID, [after, PAGE]);
    yield rows;
    if (rows.length < PAGE) return;
    after = rows.at(-1)?.sha256 ?? '';
  }
}
