import { contextOf, type OurEvent, type SendEvent } from '../domain/cloud-event.ts';
import { describeError, parseRetryAfter } from '../domain/classify-error.ts';
import { NeedsOperator } from '../domain/errors.ts';
import { ID, sign, SIGNATURE, TIMESTAMP } from '../domain/standard-webhooks.ts';
import { traceId } from '../domain/trace-id.ts';

/** A message was not sent, or perhaps it was. The text holds no address and nothing that the other side said. */
export class NotSent extends Error {
  override readonly name = 'NotSent';
  /** True if a repeat cannot succeed. */
  readonly isFinal: boolean;
  /** Milliseconds for which the other side wants no repeat. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    { isFinal = false, retryAfterMs }: { isFinal?: boolean; retryAfterMs?: number | undefined } = {},
  ) {
    super(message);
    this.isFinal = isFinal;
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * Where signed webhooks go. `secrets` are one, or the new and the old one: a receiver may know only one of them. `send`
 * refuses hosts that may not be called.
 */
export type SignedWebhook = { url: string; secrets: readonly string[]; send: typeof fetch; now: () => Date };

const WITHIN_MS = 15_000;

/**
 * Posts a body, signed by Standard Webhooks. A repeat has the same id, so that a receiver can drop it. It takes at most
 * 15 s. @throws NotSent
 */
export async function postSigned(
  { url, secrets, send, now }: SignedWebhook,
  { id, body, type = 'application/json' }: { id: string; body: string; type?: string },
): Promise<void> {
  const timestamp = String(Math.floor(now().getTime() / 1_000));
  const signal = AbortSignal.timeout(WITHIN_MS);
  const headers = {
    'content-type': type,
    [ID]: id,
    [TIMESTAMP]: timestamp,
    [SIGNATURE]: sign(secrets, id, timestamp, body),
  };
  const answer = await send(url, { method: 'POST', headers, body, signal }).catch((error: unknown) => {
    if (error instanceof NeedsOperator) throw new NotSent(describeError(error));
    throw new NotSent(
      signal.aborted ? 'the receiver did not answer in time' : `the receiver could not be reached${codeOf(error)}`,
    );
  });
  // The status says it all. The body is read so that the connection can be used again, and nobody waits for it.
  void answer.arrayBuffer().catch(() => {});
  // RFC 9110, section 15.5.11: what is gone does not come back.
  if (answer.status === 410) throw new NotSent('the receiver says that its URL is gone (410)', { isFinal: true });
  const retryAfterMs = parseRetryAfter(answer.headers);
  if (!answer.ok) throw new NotSent(`the receiver answered ${answer.status}${hintAt(answer.status)}`, { retryAfterMs });
}

/** The code of a connection that failed, such as ECONNREFUSED. The message of `fetch` is always the same. */
function codeOf(error: unknown): string {
  const { code } = ((error as Error).cause ?? {}) as { code?: unknown };
  return typeof code === 'string' ? ` (${code})` : '';
}

function hintAt(status: number): string {
  if (status === 401 || status === 403) return ': compare its secret with ours';
  return status >= 300 && status < 400 ? ': a redirect is not followed' : '';
}

/**
 * Makes a function that posts CloudEvents in structured mode, so that the signature covers all of an event.
 * @param source the publisher, a URI reference
 * @see https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md#32-structured-content-mode
 */
export function eventWebhook(
  to: SignedWebhook,
  { source, type = 'application/cloudevents+json' }: { source: string; type?: string },
): SendEvent {
  return async (event) => {
    const body = JSON.stringify({ ...contextOf(event, source), data: event.data });
    await postSigned(to, { id: webhookId(event), body, type });
    return undefined;
  };
}

/** A header cannot carry each id of an order. */
function webhookId({ subject, sequence }: OurEvent): string {
  return `${traceId(subject)}-${sequence}`;
}
