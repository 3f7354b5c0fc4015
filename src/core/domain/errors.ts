import type { PlacementCause } from './placement-cause.ts';
import type { ReasonCode } from './reason-code.ts';
import type { DropCause } from './webhook-cause.ts';

/** Errors that providers throw. `decideByKind` and `verifyAndTranslate` decide what follows from each. */

/** Details of the POS's answer, which the attempt's row stores. They must not hold a secret. */
type Answer = {
  httpStatus?: number | undefined;
  /** By default the cause is derived from the kind of error and the HTTP status. */
  cause?: PlacementCause | undefined;
};

/** Lets `instanceof` compare names, because a provider's own package has a copy of these classes. */
function isCalled(name: string, error: unknown): boolean {
  return error instanceof Error && error.name === name;
}

/** The POS or the platform may accept the same request later. */
export class TryAgain extends Error {
  override readonly name = 'TryAgain';
  /** True if the POS may have taken the order despite the error. This puts the placement in doubt. */
  readonly sent: boolean;
  /** Milliseconds that the other side asked us to wait. */
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

/**
 * Copies an error, with the values of `better` in place of its own. With `sent: false` the error is about a request
 * before the order, so its status is left out: otherwise a 5xx to that request would put the order in doubt.
 */
export function tryAgainWith(
  { message, sent, retryAfterMs, httpStatus }: TryAgain,
  better: { message?: string; sent?: boolean; retryAfterMs?: number | undefined },
): TryAgain {
  const isBefore = better.sent === false && httpStatus !== undefined && httpStatus !== 429;
  const status = isBefore ? { cause: { code: 'pos_failing', httpStatus } as const } : { httpStatus };
  return new TryAgain(better.message ?? message, { sent, retryAfterMs, ...status, ...better });
}

/** No retry will work until an operator corrects settings, credentials or the location. */
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

/**
 * The POS finally refuses to take or to cancel the order. The member sees the `reason` of a refused order, not that of
 * a refused cancel. `reasonCode` and `itemIds` (our own ids) are for programs. The message is for the operator.
 */
export class GiveUp extends Error {
  override readonly name = 'GiveUp';
  readonly reason: string;
  readonly reasonCode: ReasonCode | undefined;
  readonly itemIds: readonly string[] | undefined;
  readonly httpStatus: number | undefined;

  constructor(
    message: string,
    about: { reason: string; reasonCode?: ReasonCode | undefined; itemIds?: readonly string[] | undefined } & Answer,
  ) {
    super(message, about);
    this.reason = about.reason;
    this.reasonCode = about.reasonCode;
    this.itemIds = about.itemIds;
    this.httpStatus = about.httpStatus;
  }

  static override [Symbol.hasInstance](error: unknown): error is GiveUp {
    return isCalled('GiveUp', error);
  }
}

/** The cause is for programs and the console, the message is for people. */
type DropOptions = { cause?: DropCause };

/** The webhook cannot be read. It is stored as `dropped`, and nothing of it is applied. */
export class Poison extends Error {
  override readonly name = 'Poison';

  constructor(message: string, { cause }: DropOptions = {}) {
    super(message, { cause });
  }

  static override [Symbol.hasInstance](error: unknown): error is Poison {
    return isCalled('Poison', error);
  }
}

/** The webhook's signature is missing or wrong. The webhook is stored as `dropped`, and nothing of it is applied. */
export class NotAuthentic extends Error {
  override readonly name = 'NotAuthentic';

  constructor(message: string, { cause }: DropOptions = {}) {
    super(message, { cause });
  }

  static override [Symbol.hasInstance](error: unknown): error is NotAuthentic {
    return isCalled('NotAuthentic', error);
  }
}
