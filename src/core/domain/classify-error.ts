import { describeError } from './describe-error.ts';
import { GiveUp, NeedsOperator, TryAgain } from './errors.ts';
import { PlacementCause, type Why } from './placement-cause.ts';

/** Describes an error for its placement: its sentence, and its cause or, without one, the cause of its kind. */
export function classifyError(error: unknown): Why {
  return { problem: describeError(error), cause: ownCause(error) ?? causeByKind(error) };
}

/** Reads the error's own cause. A provider's package may put anything there, and Postgres must be able to store it. */
function ownCause(error: unknown): PlacementCause | undefined {
  return error instanceof Error ? PlacementCause.safeParse(error.cause).data : undefined;
}

function causeByKind(error: unknown): PlacementCause {
  const { httpStatus } = (error ?? {}) as { httpStatus?: number };
  if (error instanceof GiveUp) return { code: 'pos_rejected_order', httpStatus };
  if (error instanceof NeedsOperator) {
    return { code: httpStatus === 401 || httpStatus === 403 ? 'pos_refused_us' : 'pos_set_up_wrong', httpStatus };
  }
  if (!(error instanceof TryAgain)) return { code: 'unexpected_error' };
  if (httpStatus === 429) return { code: 'pos_busy', httpStatus };
  if (httpStatus !== undefined) return { code: 'pos_failing', httpStatus };
  // If we keep to a vendor's limit ourselves, there is a wait and no status.
  if (error.retryAfterMs !== undefined) return { code: 'pos_busy' };
  return { code: error.sent ? 'pos_silent' : 'pos_unreachable' };
}
