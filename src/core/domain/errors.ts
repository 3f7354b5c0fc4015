import type { PlacementCause } from './placement-cause.ts';
import type { DropCause } from './webhook-cause.ts';

/** What a provider throws, in the core's words. What each one leads to stands in `send-order.ts`, `decide-by-kind.ts` and the webhook door. */

/** What an attempt learnt from the POS's answer, for the attempt's row; never a secret. */
type Answer = {
  httpStatus?: number | undefined;
  /** Where there is none, it follows from the kind of error and the HTTP status. */
  cause?: PlacementCause | undefined;
};

/**
 * What `instanceof` goes by: the name. A provider's own package brings a copy of this file, and what it throws
 * must mean here what it means there.
 */
function isCalled(name: string, error: unknown): boolean {
  return error instanceof Error && error.name === name;
}

/** The POS or the platform may take the same request later. */
export class TryAgain extends Error {
  override readonly name = 'TryAgain';
  /** May the POS have taken the order all the same? True puts the placement in doubt. */
  readonly sent: boolean;
  /** Milliseconds the other side asked us to wait. */
  readonly retryAfterMs: number | undefined;
  readonly httpStatus: number | undefined;

  constructor(message: string, about: { sent: boolean; retryAfterMs?: number | undefined } & Answer) {
    super(message, about);
    this.sent = about.sent;
    this.retryAfterMs = about.retryAfterMs;
    this.httpStatus = about.httpStatus;
  }

  static override [Symbol.hasInstance](error: unknown): error is TryAgain {
    return isCalled('TryAgain', error);
  }
}

/** The same failure, with what is known better: whether the request was sent, how long to wait, what it was about. */
export function tryAgainWith(
  { message, sent, retryAfterMs, httpStatus }: TryAgain,
  better: { message?: string; sent?: boolean; retryAfterMs?: number },
): TryAgain {
  return new TryAgain(better.message ?? message, { sent, retryAfterMs, httpStatus, ...better });
}

/** Nothing will work until one of us mends settings, credentials or the location. */
export class NeedsOperator extends Error {
  override readonly name = 'NeedsOperator';
  readonly httpStatus: number | undefined;

  constructor(message: string, about: Answer = {}) {
    super(message, about);
    this.httpStatus = about.httpStatus;
  }

  static override [Symbol.hasInstance](error: unknown): error is NeedsOperator {
    return isCalled('NeedsOperator', error);
  }
}

/** The order will never be taken. `reason` is shown to the member; the message is for the operator. */
export class GiveUp extends Error {
  override readonly name = 'GiveUp';
  readonly reason: string;
  readonly httpStatus: number | undefined;

  constructor(message: string, about: { reason: string } & Answer) {
    super(message, about);
    this.reason = about.reason;
    this.httpStatus = about.httpStatus;
  }

  static override [Symbol.hasInstance](error: unknown): error is GiveUp {
    return isCalled('GiveUp', error);
  }
}

/** Why, by its code, for programs and for the console; the message is for people. */
type Why = { cause?: DropCause };

/** The webhook cannot be read: the webhook is dropped and kept. */
export class Poison extends Error {
  override readonly name = 'Poison';

  constructor(message: string, { cause }: Why = {}) {
    super(message, { cause });
  }

  static override [Symbol.hasInstance](error: unknown): error is Poison {
    return isCalled('Poison', error);
  }
}

/** The webhook's signature is missing or wrong: the webhook is dropped and kept. */
export class NotAuthentic extends Error {
  override readonly name = 'NotAuthentic';

  constructor(message: string, { cause }: Why = {}) {
    super(message, { cause });
  }

  static override [Symbol.hasInstance](error: unknown): error is NotAuthentic {
    return isCalled('NotAuthentic', error);
  }
}
