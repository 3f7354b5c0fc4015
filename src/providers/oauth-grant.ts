import type { ZodType } from 'zod';
import { NeedsOperator, TryAgain } from '../core/domain/errors.ts';
import type { PosContext } from '../core/domain/provider.ts';
import { callPos } from './call-pos.ts';

/**
 * Requests a token by OAuth, with `form` or `json` as the body, and `basic`, the client's id and secret, as HTTP Basic.
 * @param context.signal `obtain`'s, not the order's: others wait for the same token
 * @param about.refused what to say if the POS grants none. A 401, a 403 and redirects come without a body
 * @throws NeedsOperator as `refused` says; TryAgain if no token can be read in the answer
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
  if (!granted.success) throw new TryAgain(`${about.pos} granted no token that can be read`, { sent: false });
  return granted.data;
}
