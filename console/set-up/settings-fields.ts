import { valueInWords } from '../../src/core/domain/describe-change.ts';
import { labelOf } from '../../src/core/domain/label-of.ts';

/** A part of the JSON Schema of settings (draft 2020-12), as far as a form needs it. */
export type Schema = {
  type?: string;
  format?: string;
  title?: string;
  description?: string;
  default?: unknown;
  enum?: readonly unknown[];
  const?: unknown;
  anyOf?: readonly Schema[];
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  additionalProperties?: Schema | boolean;
  writeOnly?: boolean;
  /** A secret that we choose ourselves begins so. */
  generated?: string;
  requiredWithout?: string;
};

/** One input of the form. `fields` is a group of inputs, `map` is rows of two texts, and `json` is any value. */
export type Field = {
  /** The names on the way to it, joined by dots: the key of the draft and of problems. */
  id: string;
  path: readonly string[];
  label: string;
  kind: 'text' | 'url' | 'secret' | 'number' | 'choice' | 'map' | 'json' | 'fields';
  isRequired: boolean;
  /** The field without which a new location requires this one. */
  requiredWithout?: string | undefined;
  /** True if its value is never shown. Then the draft has only what was typed again. */
  isSecret: boolean;
  /** True if several texts may be written, with white space between. */
  isList: boolean;
  /** What a secret begins with that we choose ourselves. */
  generated?: string | undefined;
  description?: string | undefined;
  /** The value if it is left out, in words. */
  fallback?: string | undefined;
  options: readonly { value: string; name: string; is: unknown }[];
  fields: readonly Field[];
};

/** The texts of the form, by the ids of its fields. Null: remove the stored secret. */
export type SettingsDraft = Readonly<
  Record<string, string | null | readonly (readonly [key: string, value: string])[]>
>;

/** A map with more entries is edited as JSON. */
const ROWS_MAX = 40;

/**
 * Makes the fields of a form, the required ones first.
 * @param shown the stored settings, of which a secret has only a fingerprint
 */
export function fieldsOf(
  schema: Schema,
  shown: Readonly<Record<string, { value?: unknown } | { fingerprint: string }>> = {},
): Field[] {
  return partsOf(schema, [], (name) => {
    const stored = shown[name];
    return stored === undefined ? undefined : 'fingerprint' in stored ? SECRET : stored.value;
  });
}

/** What is said of a stored value that nobody may see. */
export const hiddenInWords = ({ origin, fingerprint }: { origin?: string; fingerprint: string }): string =>
  `${origin === undefined ? 'a value that is not shown' : `${origin}, the rest is not shown`} (fingerprint ${fingerprint})`;

/** A stored value that is not shown. */
const SECRET = Symbol('secret');

function partsOf(schema: Schema, path: readonly string[], storedOf: (name: string) => unknown): Field[] {
  const { properties = {}, required = [] } = schema;
  const fields = Object.entries(properties).map(([name, part]) =>
    fieldOf(part, [...path, name], required.includes(name), storedOf(name)),
  );
  const others = new Set(fields.map(({ requiredWithout }) => requiredWithout));
  const rankOf = ({ id, isRequired, requiredWithout, fallback }: Field): number => {
    if (isRequired) return 0;
    if (requiredWithout !== undefined || others.has(id)) return 1;
    return fallback === undefined ? 2 : 3;
  };
  return fields.toSorted((one, other) => rankOf(one) - rankOf(other));
}

function fieldOf(part: Schema, path: readonly string[], isRequired: boolean, stored: unknown): Field {
  const isSecret = part.writeOnly === true || stored === SECRET;
  const { kind, options } = kindOf(part, isSecret, isRequired, stored);
  const within = stored as Record<string, unknown> | undefined;
  return {
    id: path.join('.'),
    path,
    label: labelOf(path.at(-1) ?? ''),
    kind,
    isRequired,
    requiredWithout: part.requiredWithout,
    isSecret,
    isList: kind === 'secret' && part.anyOf?.some(({ type }) => type === 'array') === true,
    generated: part.generated,
    description: part.description?.replaceAll(NAME, (name) => `“${labelOf(name)}”`),
    fallback: fallbackOf(part),
    options,
    // A part is required only if its group is.
    fields:
      kind === 'fields' ? partsOf(isRequired ? part : { ...part, required: [] }, path, (name) => within?.[name]) : [],
  };
}

/** Another setting, in a description. */
const NAME = /(?<![\w/.])[a-z]+(?:[A-Z]\w*)+/g;

function kindOf(
  part: Schema,
  isSecret: boolean,
  isRequired: boolean,
  stored: unknown,
): { kind: Field['kind']; options: Field['options'] } {
  const isText = part.type === 'string' || part.anyOf?.some(({ type }) => type === 'string') === true;
  const plain = (kind: Field['kind']): { kind: Field['kind']; options: [] } => ({ kind, options: [] });
  const isUrl = part.format === 'uri';
  // A URL is long and typed by hand, so it can be read while it is typed.
  if (isSecret) return plain(!isText ? 'json' : isUrl ? 'url' : 'secret');
  const values =
    part.const !== undefined ? [part.const] : (part.enum ?? (part.type === 'boolean' ? [true, false] : []));
  if (values.length > 0) {
    const none = { value: '', name: noneOf(part, isRequired), is: undefined };
    return {
      kind: 'choice',
      options: [none, ...values.map((is) => ({ value: String(is), name: wordsOf(is), is }))],
    };
  }
  if (isText) return plain(isUrl ? 'url' : 'text');
  if (part.type === 'number' || part.type === 'integer') return plain('number');
  if (part.properties !== undefined) return plain('fields');
  const each = part.additionalProperties;
  const isMap = typeof each === 'object' && each.type === 'string' && Object.keys(stored ?? {}).length <= ROWS_MAX;
  return plain(isMap ? 'map' : 'json');
}

function noneOf(part: Schema, isRequired: boolean): string {
  const fallback = fallbackOf(part);
  if (fallback !== undefined) return `default: ${fallback}`;
  return isRequired ? 'Choose …' : 'not set';
}

function wordsOf(value: unknown): string {
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value);
}

/** A default of `{}` says nothing. */
function fallbackOf({ default: value }: Schema): string | undefined {
  if (value === undefined || JSON.stringify(value) === '{}') return undefined;
  return typeof value === 'object' ? valueInWords(JSON.stringify(value)) : wordsOf(value);
}

/** All inputs, also those in groups. */
function inputsOf(fields: readonly Field[]): Field[] {
  return fields.flatMap((field) => (field.kind === 'fields' ? inputsOf(field.fields) : [field]));
}

/** The draft that changes nothing. @param settings the stored settings without secrets; `{}` for none */
export function draftOf(fields: readonly Field[], settings: object): SettingsDraft {
  return Object.fromEntries(
    inputsOf(fields).map((field) => {
      const value = valueAt(settings, field.path);
      if (field.kind === 'map') return [field.id, Object.entries((value ?? {}) as Record<string, string>)];
      if (field.isSecret || value === undefined) return [field.id, ''];
      if (field.kind === 'json') return [field.id, JSON.stringify(value, undefined, 2)];
      const plain = value as string | number | boolean;
      return [field.id, String(plain)];
    }),
  );
}

function valueAt(settings: unknown, path: readonly string[]): unknown {
  return path.reduce((value, name) => (value as Record<string, unknown> | undefined)?.[name], settings);
}

/**
 * Reads the settings that a draft describes. What the draft leaves as it was stays, also where a form would write it
 * differently.
 * @param base the stored settings without secrets
 * @returns `problems` by the paths in the request, such as a number that is none; `removed` are secrets to remove
 */
export function readDraft(
  fields: readonly Field[],
  draft: SettingsDraft,
  base: object = {},
): { settings: Record<string, unknown>; removed: string[]; problems: Record<string, string> } {
  const before = draftOf(fields, base);
  const settings = structuredClone(base) as Record<string, unknown>;
  const removed: string[] = [];
  const problems: Record<string, string> = {};
  for (const field of inputsOf(fields)) {
    const { [field.id]: written = '' } = draft;
    if (isSame(written, before[field.id])) continue;
    if (written === null) {
      removed.push(field.id);
      continue;
    }
    try {
      write(settings, field.path, parse(field, written));
    } catch (error) {
      problems[`settings.${field.id}`] = (error as Error).message;
    }
  }
  tidy(settings, fields);
  return { settings, removed, problems };
}

export function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** @returns undefined for an empty input @throws Error with a sentence */
function parse({ kind, options, isList }: Field, written: NonNullable<SettingsDraft[string]>): unknown {
  if (typeof written !== 'string') {
    const rows = written.filter(([key, value]) => key !== '' || value !== '');
    const keys = new Set(rows.map(([key]) => key));
    if (keys.has('')) throw new Error('A row has no left side. Fill it in, or remove the row.');
    if (keys.size < rows.length) throw new Error('Two rows have the same left side. Remove one of them.');
    return Object.fromEntries(rows);
  }
  if (written.trim() === '') return undefined;
  if (kind === 'choice') return options.find(({ value }) => value === written)?.is;
  if (kind === 'number') {
    const number = Number(written);
    if (!Number.isFinite(number)) throw new Error('This is not a number.');
    return number;
  }
  const several = isList ? written.trim().split(/\s+/) : [];
  if (several.length > 1) return several;
  if (kind !== 'json') return kind === 'secret' ? written : written.trim();
  try {
    return JSON.parse(written) as unknown;
  } catch {
    throw new Error('This is not valid JSON. Check the commas, the quotes and the brackets.');
  }
}

function write(settings: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [name = '', ...rest] = path;
  if (rest.length > 0) {
    const within = settings[name];
    const next = typeof within === 'object' && within !== null ? (within as Record<string, unknown>) : {};
    settings[name] = next;
    write(next, rest, value);
  } else if (value === undefined) delete settings[name];
  else settings[name] = value;
}

/** Removes optional groups in which nothing is set. */
function tidy(settings: Record<string, unknown>, fields: readonly Field[]): void {
  for (const { kind, path, isRequired, fields: within } of fields) {
    const name = path.at(-1) ?? '';
    const group = settings[name];
    if (kind !== 'fields') continue;
    if (typeof group === 'object' && group !== null) tidy(group as Record<string, unknown>, within);
    if (isRequired) settings[name] ??= {};
    else if (isSame(settings[name], {})) delete settings[name];
  }
}

/** The JSON Merge Patch (RFC 7396) that makes `after` of `before`. Undefined if nothing changes. */
export function mergePatchOf(before: unknown, after: unknown): unknown {
  if (isSame(before, after)) return undefined;
  if (!isObject(before) || !isObject(after)) return after;
  const patch: Record<string, unknown> = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (!Object.hasOwn(after, name)) patch[name] = null;
    else if (!isSame(before[name], after[name])) patch[name] = mergePatchOf(before[name], after[name]);
  }
  return patch;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Moves a draft to settings that somebody else has changed meanwhile: what was typed stays, and all else is as it is
 * stored now.
 */
export function moveDraft<Draft extends object>(draft: Draft, before: Draft, now: Draft): Draft {
  return Object.fromEntries(
    Object.entries({ ...now, ...draft }).map(([id, written]) => {
      const isTyped = !isSame(written, before[id as keyof Draft]);
      return [id, isTyped ? (written as unknown) : now[id as keyof Draft]];
    }),
  ) as Draft;
}

/** The ids of all inputs and groups, as in the body of a request. */
export function idsOf(fields: readonly Field[]): string[] {
  return fields.flatMap((field) => [`settings.${field.id}`, ...idsOf(field.fields)]);
}
