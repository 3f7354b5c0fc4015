import { z } from 'zod';

const LENGTH_MAX = 500;

/** True if Postgres can store the text. It cannot store NUL or a lone surrogate, which JSON strings may contain. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/** Removes NULs and replaces lone surrogates, so that Postgres can store the text. */
export function storable(text: string): string {
  return text.replaceAll('\0', '').toWellFormed();
}

/** A text in the details of a cause. Postgres can store it. It must not quote a value of a payload. */
export const CauseText = z.string().max(LENGTH_MAX).refine(isStorable);

export function toCauseText(text: string): string {
  return storable(text).slice(0, LENGTH_MAX).toWellFormed();
}
