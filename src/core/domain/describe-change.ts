/** What a change of settings means, in words. The console and the commands use it, so it loads nothing. */
import { isObject, isRecord, jsonIn } from './json-text.ts';
import { labelOf } from './label-of.ts';

/** A changed field. The text `set` stands for a value that is not shown, and null for none. */
export type Change = { field: string; before: string | null; after: string | null };

/** What people call an integration and a location. */
export type Names = { vendor: (integration: string) => string; location: (locationId: string) => string };
/** Where names are not known. */
export const IDS: Names = { vendor: String, location: String };

/** Describes a change with its field: `Secret: changed`. */
export function describeChange(change: Change, names = IDS): string {
  return `${fieldInWords(change.field)}: ${whatChanged(change, names)}`;
}

/** The name of a field as the form labels it. The parts of a path below it are ids and stay. */
export function fieldInWords(field: string): string {
  const [name = '', ...parts] = field.replace(/^settings\./, '').split('.');
  return [labelOf(name), ...parts].join(', ');
}

/** Describes a change without its field. A hidden or a long value is only `set` or `changed`. */
export function whatChanged({ field, before, after }: Change, names = IDS): string {
  if (after === null) return 'removed';
  const [was, is] = [before, after].map((text) => {
    if (field === 'integration' && text !== null) return names.vendor(text);
    return field === 'country' ? countryOf(text) : valueInWords(text);
  });
  if (before === null) return is ?? 'set';
  return was === undefined || is === undefined || was === is ? 'changed' : `${was} → ${is}`;
}

/** The name of a country by its two letters. */
export const countryOf = (text: string | null): string | undefined =>
  text !== null && /^[A-Z]{2}$/.test(text)
    ? new Intl.DisplayNames('en', { type: 'region' }).of(text)
    : valueInWords(text);

/** Writes JSON without its brackets. @returns undefined if the value is hidden, or is JSON that was cut off */
export function valueInWords(text: string | null): string | undefined {
  if (text === null || text === 'set' || text === 'changed') return undefined;
  const value = jsonIn(text);
  if (isObject(value) || typeof value === 'boolean') return jsonInWords(value);
  return /^[[{].*…$/s.test(text) ? undefined : text;
}

function jsonInWords(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (!isObject(value)) return String(value);
  const parts = Array.isArray(value)
    ? value.map(jsonInWords)
    : Object.entries(value).map(([name, each]) => `${labelOf(name)} ${jsonInWords(each)}`);
  return parts.join(', ') || 'none';
}

/** Reads the two sides of an action in the audit, each a JSON object of texts. @returns undefined for any other text */
export function changesIn(before: string | null, after: string | null): Change[] | undefined {
  const [was, is] = [jsonIn(before ?? '{}'), jsonIn(after ?? '{}')] as Record<string, string | null>[];
  if (!isRecord(was) || !isRecord(is)) return undefined;
  const fields = new Set([...Object.keys(is), ...Object.keys(was)]);
  return [...fields].map((field) => ({ field, before: was[field] ?? null, after: is[field] ?? null }));
}
