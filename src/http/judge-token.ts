import { withTimeout } from '../core/domain/timing.ts';
import { mayBeToken } from '../core/domain/make-token.ts';
import type { ListedToken } from '../core/locations/changed-tokens.ts';
import type { TokenList } from '../core/locations/token-list.ts';
import type { AuthenticateToken, OldToken, TokenScope } from '../core/locations/webhook-tokens.ts';
import type { DatabaseWatch } from '../core/postgres/watch-database.ts';

/**
 * Checks a webhook token.
 * @returns its scope if it is valid; a ListedToken, which has no settings, if Postgres does not respond and the list of
 *   valid tokens contains it; an OldToken if it was valid once; undefined if it was never valid
 * @throws Error if the token cannot be checked in `milliseconds`
 */
export type JudgeToken = (
  token: string,
  milliseconds: number,
  source?: () => string,
) => TokenScope | Promise<TokenScope | ListedToken | OldToken | undefined> | undefined;

/** Makes the check of tokens. It asks Postgres. If Postgres does not respond, it uses the last known `list`, if any. */
export function tokenJudge(
  authenticateToken: AuthenticateToken,
  watch: Pick<DatabaseWatch, 'isAway' | 'check'>,
  list: Pick<TokenList, 'find'> | undefined,
): JudgeToken {
  const byList = (token: string, error: Error): ListedToken => {
    const listed = list?.find(token);
    if (listed === undefined) throw error;
    return listed;
  };
  return (token, milliseconds, source) => {
    if (list !== undefined && watch.isAway()) {
      return mayBeToken('exw_', token) ? Promise.resolve(byList(token, new Error('Postgres is away'))) : undefined;
    }
    const found = authenticateToken(token, source);
    if (!(found instanceof Promise)) return found;
    const late = (): Error => new Error(`the token was not looked up in ${milliseconds} ms`);
    return withTimeout(milliseconds, () => found, late).catch((error: Error) => {
      void watch.check();
      return byList(token, error);
    });
  };
}
