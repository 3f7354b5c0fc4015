import { callPos, NeedsOperator, quoteRefusal, TryAgain } from 'expediter-kit';
import type { Credentials, Grant, PosContext } from 'expediter-kit';
import { TokenGranted, type Settings } from './payloads.ts';

/** The settings that a token is asked for with: whoever has the same ones shares it, and others start afresh. */
export function tokenOf(context: PosContext<Settings>): Parameters<Credentials['accessToken']>[0] {
  const { clientId, clientSecret, baseUrl } = context.settings;
  return {
    seed: { clientId, clientSecret, baseUrl },
    obtain: (_refreshToken, signal) => obtainToken(context, signal),
  };
}

/**
 * Asks for a token by OAuth's client credentials ("Tokens").
 * @param signal not the order's: orders of other stores wait for the same token
 */
async function obtainToken({ settings, fetch }: PosContext<Settings>, signal: AbortSignal): Promise<Grant> {
  const { clientId, clientSecret, baseUrl } = settings;
  const answer = await callPos({
    method: 'POST',
    url: `${baseUrl}/v1/oauth/token`,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: clientSecret,
    }).toString(),
    signal,
    fetch,
  }).catch(quoteRefusal([401], refused));
  if (answer.status >= 300) throw new NeedsOperator(refused(answer.status), { httpStatus: answer.status });
  const granted = TokenGranted.safeParse(answer.json);
  if (!granted.success) throw new TryAgain('Acme granted no token that can be read', { sent: false });
  return { accessToken: granted.data.access_token, expiresIn: granted.data.expires_in };
}

function refused(httpStatus: number): string {
  return `Acme grants no token (${httpStatus}): are clientId, clientSecret and baseUrl right?`;
}
