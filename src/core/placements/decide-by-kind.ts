import { storable } from '../domain/cause-text.ts';
import { classifyError } from '../domain/classify-error.ts';
import { GiveUp, NeedsOperator, TryAgain } from '../domain/errors.ts';
import { refusedFor } from '../domain/refused-for.ts';
import type { Decision } from './conclude-placement.ts';

/** Decides by the kind of an error that leaves no doubt. */
export function decideByKind(error: unknown): Extract<Decision, { do: 'fail' | 'hold' | 'try later' }> {
  const about = classifyError(error);
  if (error instanceof GiveUp) return { do: 'fail', reason: storable(error.reason), ...refusedFor(error), ...about };
  if (error instanceof NeedsOperator) return { do: 'hold', ...about };
  return { do: 'try later', retryAfterMs: waitAfter(error), ...about };
}

/** The wait that the other side asked for. */
export function waitAfter(error: unknown): number | undefined {
  return error instanceof TryAgain ? error.retryAfterMs : undefined;
}
