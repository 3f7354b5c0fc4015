import { z } from 'zod';
import { Poison, TryAgain } from '../core/domain/errors.ts';
import type { PosAnswer } from './call-pos.ts';

/**
 * Reads what a POS answers about an order's state.
 * @param read reads its JSON, and throws Poison as `readShape` does
 * @throws TryAgain that names the fields which are wrong and never their values: nobody knows more than before
 */
export function readState<State>({ status: httpStatus, json }: PosAnswer, read: (json: unknown) => State): State {
  try {
    return read(json);
  } catch (error) {
    if (!(error instanceof Poison)) throw error;
    const message = `what the POS answered about the order cannot be used: ${error.message}`;
    throw new TryAgain(message, { sent: false, httpStatus });
  }
}

/** The id of what was asked about. An answer with another is about another order. */
export function asked(id: string) {
  return z.string().refine((given) => given === id, { error: "is another order's than the one asked about" });
}
