import { z } from 'zod';

const LENGTH_MAX = 500;

/** A text within a cause: short, and storable by Postgres in JSON. Never a value of a payload. */
export const CauseText = z
  .string()
  .max(LENGTH_MAX)
  .refine((text) => !text.includes('\0') && text.isWellFormed());

/** Makes any text fit for a cause. */
export function toCauseText(text: string): string {
  return text.replaceAll('\0', '').toWellFormed().slice(0, LENGTH_MAX).toWellFormed();
}
