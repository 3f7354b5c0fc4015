import { isObject } from '../domain/json-text.ts';
import { createHmac, hkdfSync } from 'node:crypto';
import { z } from 'zod';
import type { Provider, Registry } from '../domain/provider.ts';
import { newSettingsOf } from './locations.ts';
import type { SettingsKeys } from './settings-key.ts';

/** A part of a JSON Schema, as far as it is read here. */
type Part = {
  title?: string;
  description?: string;
  shown?: boolean;
  /** Says for which restaurant a credential is used. `shared`: several locations have it. */
  target?: true | 'shared';
  /** The setting without which this one is required. */
  requiredWithout?: string;
  type?: string;
  format?: string;
  enum?: unknown[];
  const?: unknown;
  anyOf?: Part[];
  oneOf?: Part[];
  items?: Part;
  properties?: Record<string, Part>;
  required?: string[];
  additionalProperties?: Part | boolean;
};

const schemas = new WeakMap<Provider, Part>();

/**
 * The JSON Schema of a provider's settings (draft 2020-12). A field that is never shown is `writeOnly`: every text that
 * the provider's schema does not mark with `.meta({ shown: true })`. A number, a boolean or one of a few words is shown.
 */
export function settingsSchema(provider: Provider): object {
  const { properties = {}, ...schema } = schemaOf(provider);
  const fields = Object.entries(properties).map(([name, part]) => [
    name,
    isShown(properties[name]) ? part : { ...part, writeOnly: true },
  ]);
  const described = { ...schema, properties: Object.fromEntries(fields) as object };
  // `shown` and `target` are marks of ours, at any depth. A setting of this name is an object.
  const withoutMark = (name: string, value: unknown): unknown =>
    ['shown', 'target'].includes(name) && typeof value !== 'object' ? undefined : value;
  return JSON.parse(JSON.stringify(described, withoutMark)) as object;
}

/** What people call an integration: the title of its settings. */
export function vendorName(registry: Registry, integration: string): string {
  const provider = registry.get(integration);
  return (provider && schemaOf(provider).title) ?? integration;
}

/** A schema of another library, or of a version of zod without JSON Schema, shows nothing. */
function toJsonSchema(provider: Provider): Part {
  try {
    return z.toJSONSchema(newSettingsOf(provider), { io: 'input', unrepresentable: 'any' }) as Part;
  } catch {
    return { type: 'object' };
  }
}

/** The schema with `application`. A location gives the application's name, or the fields that it supplies. */
function withReference({ application }: Provider, schema: Part): Part {
  if (application === undefined) return schema;
  const { properties = {}, required = [] } = schema;
  const supplied = Object.keys(application.shape);
  const description = `The name of the platform's vendor application, which supplies ${supplied.join(', ')}.`;
  const parts = Object.entries(properties).map(([name, part]) => {
    const isSupplied = supplied.includes(name) && required.includes(name);
    return [name, isSupplied ? { ...part, requiredWithout: 'application' } : part] as const;
  });
  return {
    ...schema,
    properties: { application: { type: 'string', shown: true, description }, ...Object.fromEntries(parts) },
    required: required.filter((name) => !supplied.includes(name)),
  };
}

function schemaOf(provider: Provider): Part {
  const schema = schemas.get(provider) ?? withReference(provider, toJsonSchema(provider));
  schemas.set(provider, schema);
  return schema;
}

function isShown(part: Part | undefined): boolean {
  if (part === undefined) return false;
  if (part.shown === true || part.enum !== undefined || part.const !== undefined) return true;
  if (part.anyOf !== undefined) return part.anyOf.every(isShown);
  if (part.type === 'object') {
    const { properties = {}, additionalProperties: others = false } = part;
    return Object.values(properties).every(isShown) && (typeof others === 'boolean' ? !others : isShown(others));
  }
  return ['boolean', 'number', 'integer', 'null'].includes(part.type ?? '');
}

/** What a provider's schema says of the setting at a path: whether it is a URL, and whether it is a target. */
export function aboutSetting(provider: Provider, path: readonly string[]): { isUrl: boolean; target: Part['target'] } {
  const parts = partsAt(schemaOf(provider), path);
  return { isUrl: parts.some(({ format }) => format === 'uri'), target: parts.find(({ target }) => target)?.target };
}

/** The parts of a schema that apply to the value at a path, and those around it. */
function partsAt(part: Part | boolean | undefined, path: readonly string[]): Part[] {
  if (typeof part !== 'object') return [];
  const [name = '', ...rest] = path;
  const { properties = {}, additionalProperties: others, items, anyOf = [], oneOf = [] } = part;
  const inside = Object.hasOwn(properties, name) ? properties[name] : (others ?? items);
  const same = [...anyOf, ...oneOf].flatMap((each) => partsAt(each, path));
  return [part, ...same, ...(path.length === 0 ? [] : partsAt(inside, rest))];
}

export const ShownProvider = z
  .object({
    integration: z.string(),
    deduplicates: z.boolean().meta({ description: 'The POS makes one ticket per order, however often it is sent.' }),
    canBeAsked: z.boolean().meta({ description: 'The POS can be asked whether it has an order.' }),
    check: z.boolean().meta({ description: '`check` can test the settings of a location.' }),
    connect: z.boolean().meta({ description: '`connect` can register our webhook at the POS.' }),
    settings: z.record(z.string(), z.unknown()).meta({
      description:
        "The JSON Schema of a location's settings (draft 2020-12). A `writeOnly` field is a secret. Operators choose a " +
        '`generated` one themselves: it begins with the text there. A new location needs a field with `requiredWithout`, ' +
        'or the field that is named there.',
    }),
  })
  .meta({ id: 'ShownProvider' });
export type ShownProvider = z.infer<typeof ShownProvider>;

/** One setting: its value, or the fingerprint of a secret. */
export const ShownSetting = z.union([
  z.object({ value: z.unknown() }),
  z.object({
    fingerprint: z.string().meta({
      description: 'Changes if and only if the secret or the key in SETTINGS_KEY changes. It reveals nothing else.',
    }),
    origin: z.string().exactOptional().meta({ description: 'Of a URL, such as https://pos.example.com/…' }),
  }),
]);
export type ShownSetting = z.infer<typeof ShownSetting>;

/** Shows the settings of a location without its secrets. @param provider undefined if there is no such integration */
export function describeSettings(
  keys: SettingsKeys,
  provider: Provider | undefined,
  { locationId, settings }: { locationId: string; settings: unknown },
): Record<string, ShownSetting> {
  const key = deriveKey(keys, 'fingerprint of a setting');
  return Object.fromEntries(
    Object.entries(settings ?? {}).map(([name, value]: [string, unknown]) => {
      if (maySee(provider, name, value)) return [name, { value }];
      const about = JSON.stringify([locationId, name, value]);
      const origin = shownOrigin(value);
      const fingerprint = createHmac('sha256', key).update(about).digest('hex').slice(0, 12);
      return [name, { fingerprint, ...(origin && { origin }) }];
    }),
  );
}

/** Whether operators may see the value of a setting. @param provider undefined if there is no such integration */
export function maySee(provider: Provider | undefined, name: string, value: unknown): boolean {
  // guard: secrets-are-not-shown
  return provider !== undefined && isShown(schemaOf(provider).properties?.[name]) && !mayCarryToken(value);
}

/** A URL with a query or a fragment often carries a token, and so does a path with a part that could be one. */
function mayCarryToken(value: unknown): boolean {
  if (isObject(value)) return Object.values(value).some(mayCarryToken);
  if (typeof value !== 'string' || !value.includes(':')) return false;
  const url = URL.parse(value);
  return url !== null && (/[?#]./s.test(value) || (url.host !== '' && url.pathname.split('/').some(couldBeToken)));
}

/** False for a text that could be an ordinary word: fewer than 8 characters, or fewer than 16 that are all letters. */
export function couldBeToken(text: string): boolean {
  return text.length >= 16 || (text.length >= 8 && !/^\p{L}+$/u.test(text));
}

/** How a URL that is a secret is shown. Undefined for any other value. */
export function shownOrigin(value: unknown): string | undefined {
  return typeof value === 'string' && /^https?:/i.test(value) ? `${URL.parse(value)?.origin}/…` : undefined;
}

/** Derives a key for one purpose from the key that encrypts settings. */
export function deriveKey(keys: SettingsKeys, purpose: string): Buffer {
  const [first] = keys.values();
  if (first === undefined) throw new Error('no settings key');
  return Buffer.from(hkdfSync('sha256', first, '', `expediter: ${purpose}`, 32));
}
