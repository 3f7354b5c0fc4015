import { z } from 'zod';

const LENGTH_MAX = 500;

/** True if Postgres can store the text. JSON strings may contain NUL or a lone surrogate, which it cannot. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/** Removes what Postgres cannot store. */
export function storable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed();
}

/** A text within a cause: short, and storable in Postgres's JSON. Never a value of a payload. */
export const CauseText = z.string().max(LENGTH_MAX).refine(isStorable);

export function toCauseText(text: string): string {
  return storable(text).slice(0, LENGTH_MAX).toWellFormed();
}
