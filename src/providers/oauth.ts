import type { ZodType } from 'zod';
import { NeedsOperator, TryAgain } from '../core/domain/errors.ts';
import type { Connection, Credentials, PosContext } from '../core/domain/provider.ts';
import { callPos, type PosAnswer, type PosRequest, routeOf } from './call-pos.ts';
import { describeError, perhapsTaken } from '../core/domain/classify-error.ts';

/**
 * Calls a POS with an access token. After a 401, the call is repeated once with a fresh token, because a token may be
 * revoked before it expires.
 * @throws as `callPos` and `Credentials` do; NeedsOperator if the fresh token is refused too
 */
export async function callWithToken(
  credentials: Credentials,
  grant: Parameters<Credentials['accessToken']>[0],
  call: (accessToken: string) => Promise<PosAnswer>,
): Promise<PosAnswer> {
  const accessToken = await credentials.accessToken(grant);
  try {
    return await call(accessToken);
  } catch (error) {
    if (!(error instanceof NeedsOperator && error.httpStatus === 401)) throw error;
    const fresh = await credentials.accessToken({ ...grant, rejected: accessToken });
    if (fresh === accessToken) throw error;
    return call(fresh);
  }
}

/** Calls a path below `baseUrl` with an access token. @throws as `callPos` does */
export function callWithBearer(
  { settings, signal, fetch }: Pick<PosContext<{ baseUrl: string }>, 'settings' | 'signal' | 'fetch'>,
  accessToken: string,
  { path, headers, ...request }: Omit<PosRequest, 'url' | 'signal' | 'fetch'> & { path: string },
): Promise<PosAnswer> {
  return callPos({
    url: settings.baseUrl + path,
    route: routeOf(path),
    ...request,
    headers: { authorization: `Bearer ${accessToken}`, accept: 'application/json', ...headers },
    signal,
    fetch,
  });
}

/** A one-time OAuth authorisation code that a person copies from the browser. */
type WithCode = { authorizationCode?: string | undefined };

/**
 * Connects by an OAuth authorisation code. Without a code in the settings, it returns the URL to open. With a code, it
 * exchanges the code, then calls `by.connect`. If `by.connect` fails, it still returns the new settings, because a code
 * works only once.
 * @param by.url the page where the restaurant agrees. It must contain no secret, because the operator sees it
 * @param by.shown words for the operator that say where the code appears, as in "the page shows it"
 * @param by.exchange returns the new settings, such as a token, and a message about them for the operator
 */
export async function connectByCode<Context extends { settings: WithCode }>(
  context: Context,
  by: {
    url: string;
    shown: string;
    exchange: (code: string) => Promise<{ settings: Partial<Context['settings']>; did: string }>;
    connect: (context: Context) => Promise<Connection>;
  },
): Promise<Connection> {
  const { authorizationCode } = context.settings;
  if (authorizationCode === undefined) {
    return {
      done: [],
      todo: [
        `Ask an owner or manager of the restaurant to open this page and agree: ${by.url}`,
        `Put the code into the settings as authorizationCode (${by.shown}). Run expediter provider connect again ` +
          'within five minutes.',
      ],
      unused: true,
    };
  }
  const { settings: granted, did } = await by.exchange(authorizationCode);
  const settings = { ...granted, authorizationCode: undefined };
  try {
    const connected = await by.connect({ ...context, settings: { ...context.settings, ...settings } });
    return { ...connected, done: [did, ...connected.done], settings: { ...settings, ...connected.settings } };
  } catch (error) {
    return {
      done: [did],
      todo: [`The rest failed: ${describeError(error)}. Run expediter provider connect again.`],
      settings,
      unused: !perhapsTaken(error),
    };
  }
}

/**
 * Requests a token by OAuth. `form` or `json` is the body; `basic`, the client's id and secret, is sent as HTTP Basic.
 * @param context.signal the signal of `obtain`, not of one order, because other orders wait for the same token
 * @param about.refused returns the error if the POS grants no token. `json` is undefined for a 401, a 403 or a redirect
 * @throws NeedsOperator with the message of `refused`; TryAgain if the answer holds no readable token
 */
export async function oauthGrant<Granted>(
  { signal, fetch }: Pick<PosContext<unknown>, 'signal' | 'fetch'>,
  about: {
    pos: string;
    url: string;
    headers?: Record<string, string>;
    basic?: readonly [id: string, secret: string];
    granted: ZodType<Granted>;
    refused: (httpStatus: number, json?: unknown) => string | NeedsOperator;
  } & ({ form: Record<string, string> } | { json: object }),
): Promise<Granted> {
  const refuse = (httpStatus: number, json?: unknown): never => {
    const refusal = about.refused(httpStatus, json);
    throw typeof refusal === 'string' ? new NeedsOperator(refusal, { httpStatus }) : refusal;
  };
  const { status, json } = await callPos({
    method: 'POST',
    url: about.url,
    headers: {
      ...(about.basic && { authorization: `Basic ${Buffer.from(about.basic.join(':')).toString('base64')}` }),
      'content-type': 'form' in about ? 'application/x-www-form-urlencoded' : 'application/json',
      accept: 'application/json',
      ...about.headers,
    },
    body: 'form' in about ? new URLSearchParams(about.form).toString() : JSON.stringify(about.json),
    signal,
    fetch,
  }).catch((error: unknown) => {
    if (!(error instanceof NeedsOperator) || error.httpStatus === undefined) throw error;
    return refuse(error.httpStatus);
  });
  if (status >= 300) refuse(status, json);
  const granted = about.granted.safeParse(json);
  if (!granted.success) throw new TryAgain(`${about.pos} answered without a readable token`, { sent: false });
  return granted.data;
}

/** Revokes access by OAuth. @throws NeedsOperator if the POS does not answer 2xx; TryAgain */
export async function oauthRevoke(
  { signal, fetch }: Pick<PosContext<unknown>, 'signal' | 'fetch'>,
  { pos, ...request }: { pos: string; url: string; headers: Record<string, string>; body: string },
): Promise<void> {
  const { status } = await callPos({ method: 'POST', ...request, signal, fetch });
  if (status < 300) return;
  throw new NeedsOperator(`${pos} revoked nothing (${status}): check clientId and clientSecret`, {
    httpStatus: status,
  });
}
