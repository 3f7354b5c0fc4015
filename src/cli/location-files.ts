import { isObject } from '../core/domain/json-text.ts';
import { hash } from 'node:crypto';
import { readFile, readdir, realpath, stat } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseEnv } from 'node:util';
import { parseAllDocuments, stringify } from 'yaml';
import { z } from 'zod';
import { issueInWords } from '../core/domain/issue-in-words.ts';
import { Id } from '../core/domain/order.ts';
import { shapeIssues } from '../core/domain/shape-issues.ts';
import { PutBody } from '../operators/location-operations.ts';
import type { ShownLocation } from '../core/locations/show-location.ts';

/** A location as a file describes it. Its secrets are resolved. */
export type LocationFile = z.output<typeof Document> & { file: string };

const Document = z.strictObject({ id: Id, ...PutBody.shape });

/** The JSON Schema of an integration's settings, as `GET /providers` has it. */
type SettingsSchema = { properties?: Record<string, { writeOnly?: boolean }> };
type Provider = { integration: string; settings: SettingsSchema };

/** A secret in a variable, a file or a line `NAME=value` of standard input, or a text that only begins like one. */
const PREFIXED = /^(?<from>env|file|stdin|text):(?<name>.*)$/s;

/**
 * Reads all locations below a folder, or of one file: `.yaml` and `.yml`, one document per location.
 * @param secrets other folders with files of secrets
 * @returns the locations, sorted by id; and what is wrong, with the file and the field, but no value
 */
export async function readLocationFiles(
  path: string,
  providers: readonly Provider[],
  secrets: readonly string[] = [],
): Promise<{ locations: LocationFile[]; problems: string[] }> {
  const folders = await Promise.all([path, ...secrets].map(folderOf));
  const problems: string[] = [];
  const locations = new Map<string, LocationFile>();
  let input: Promise<Variables> | undefined;
  const fromInput = (): Promise<Variables> =>
    (input ??= text(process.stdin).then((lines) => new Map(Object.entries(parseEnv(lines)))));
  for (const file of await filesIn(path)) {
    const name = relative(process.cwd(), file);
    const folder = await realpath(dirname(file));
    for (const document of parseAllDocuments(await readFile(file, 'utf8'), { prettyErrors: true })) {
      const [error] = document.errors;
      if (error !== undefined) {
        const line = error.linePos?.[0].line ?? 0;
        problems.push(`${name}:${line}: this is not valid YAML (${error.code})`);
        continue;
      }
      const content = document.toJS({ maxAliasCount: 100 }) as unknown;
      if (content === null) continue;
      const parsed = Document.safeParse(content, { reportInput: true });
      if (!parsed.success) {
        problems.push(`${name}: ${shapeIssues(parsed.error).map(issueInWords).join('; ')}`);
        continue;
      }
      const { id, integration, settings } = parsed.data;
      const other = locations.get(id);
      if (other !== undefined) problems.push(`${name}: the location ${id} is also in ${other.file}`);
      const provider = providers.find((each) => each.integration === integration);
      const fields = new Map(Object.entries(provider?.settings.properties ?? {}));
      const wrong = (field: string, says: string): void =>
        void problems.push(`${name}: ${id}: settings.${field}: ${says}`);
      const resolved = await Promise.all(
        Object.entries(settings).map(async ([field, value]) => {
          const isSecret = fields.get(field)?.writeOnly === true;
          // A field that is not in the schema is never shown. An unknown integration is refused later.
          const isShown = fields.has(field) && !isSecret;
          if (provider === undefined) return [field, value];
          return [field, await resolveValue(value, { field, isSecret, isShown, folder, folders, fromInput, wrong })];
        }),
      );
      locations.set(id, {
        ...parsed.data,
        settings: Object.fromEntries(resolved) as object as LocationFile['settings'],
        file: name,
      });
    }
  }
  if (locations.size === 0 && problems.length === 0) problems.push(`${path}: no file describes a location`);
  return { locations: [...locations.values()].toSorted((one, other) => (one.id < other.id ? -1 : 1)), problems };
}

/** @returns a folder, or that of a file, without symbolic links */
async function folderOf(path: string): Promise<string> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${path} cannot be read (${error.code})`);
  });
  return realpath(found.isDirectory() ? path : dirname(path));
}

async function filesIn(path: string): Promise<string[]> {
  if (!(await stat(path)).isDirectory()) return [path];
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && /\.ya?ml$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
}

type Variables = Map<string, string | undefined>;
type Resolving = {
  field: string;
  isSecret: boolean;
  /** Whether answers and exports have the value. */
  isShown: boolean;
  folder: string;
  /** Those below which secrets are read. */
  folders: readonly string[];
  fromInput: () => Promise<Variables>;
  wrong: (field: string, says: string) => void;
};

/** Replaces references by their values, also within lists and objects. */
async function resolveValue(value: unknown, about: Resolving): Promise<unknown> {
  if (Array.isArray(value)) return Promise.all(value.map((each) => resolveValue(each, about)));
  if (isObject(value)) {
    const entries = Object.entries(value).map(async ([name, each]) => [name, await resolveValue(each, about)]);
    return Object.fromEntries((await Promise.all(entries)) as [string, unknown][]);
  }
  if (typeof value !== 'string') return value;
  const { field, isSecret, isShown, folder, folders, fromInput, wrong } = about;
  const { from = '', name = '' } = PREFIXED.exec(value)?.groups ?? {};
  if (from === 'text' && !isSecret) return name;
  // guard: references-in-secrets
  if (isShown && from !== '') {
    return wrong(field, `is not a secret, so ${from}: is not read. Write its value, or text:${from}: if it begins so`);
  }
  switch (from) {
    case 'env':
      return new Map(Object.entries(process.env)).get(name) ?? wrong(field, `the variable ${name} is not set`);
    case 'stdin':
      return (await fromInput()).get(name) ?? wrong(field, `standard input has no line ${name}=…`);
    case 'file': {
      const path = resolve(folder, name);
      const real = await realpath(path).catch(() => path);
      // guard: secrets-below-folder
      if (folders.every((each) => relative(each, real).split(sep).includes('..'))) {
        return wrong(field, `the file ${name} is not below the folder of --files or --secrets`);
      }
      return readFile(real, 'utf8').then(
        (content) => content.replace(/\r?\n$/, ''),
        (error: NodeJS.ErrnoException) => wrong(field, `the file ${name} cannot be read (${error.code})`),
      );
    }
    default:
      // guard: no-secrets-in-files
      return isSecret ? wrong(field, 'is a secret: write env:NAME, file:PATH or stdin:NAME instead of it') : value;
  }
}

/** The name of the schema that `export` writes next to the files. */
export const SCHEMA_FILE = 'location.schema.json';

const hashOf = (text: string): string => hash('sha256', text).slice(0, 32);

/** Names a location's file. No other location has this name, even on a disk that ignores capitals. */
function nameOfFile(id: string): string {
  const name = encodeURIComponent(id);
  return name.length <= 200 && id === id.toLowerCase() ? `${name}.yaml` : `${name.slice(0, 150)}@${hashOf(id)}.yaml`;
}

/** Names a secret's variable. No other secret has this name, and nothing else in an environment. */
function variableOf(id: string, field: string): string {
  const name = `LOCATION_${id}__${field.replaceAll(/(?<=[a-z\d])[A-Z]/g, '_$&')}`.replaceAll(/\W/g, '_').toUpperCase();
  const isPlain = /^[a-z\d]+(-[a-z\d]+)*$/.test(id) && /^[a-z\d]+([A-Z][a-z\d]+)*$/.test(field);
  return isPlain ? name : `${name}__${hashOf(JSON.stringify([id, field])).toUpperCase()}`;
}

/** Marks a text that `apply` would take for a reference. */
const asText = (_name: string, value: unknown): unknown =>
  typeof value === 'string' && PREFIXED.test(value) ? `text:${value}` : value;

/** Writes a location as a file that `apply` reads. @returns its name, its text, and the variables for its secrets */
export function writeLocationFile(shown: ShownLocation): { file: string; content: string; variables: string[] } {
  const { locationId: id, integration, name, timeZone, country, groups, contacts, address, backOfficeUrl } = shown;
  const details = { name, timeZone, country, groups, contacts, address, backOfficeUrl };
  const isGiven = (value: unknown): boolean => value !== null && !(Array.isArray(value) && value.length === 0);
  const variables: string[] = [];
  const settings = Object.entries(shown.settings).map(([field, setting]) => {
    if ('value' in setting) return [field, JSON.parse(JSON.stringify(setting.value), asText) as unknown];
    const variable = variableOf(id, field);
    variables.push(variable);
    return [field, `env:${variable}`];
  });
  const document = {
    id,
    integration,
    ...Object.fromEntries(Object.entries(details).filter(([, value]) => isGiven(value))),
    settings: Object.fromEntries(settings) as object,
  };
  const content = `# yaml-language-server: $schema=./${SCHEMA_FILE}\n${stringify(document)}`;
  return { file: nameOfFile(id), content, variables };
}

export function locationFileSchema(providers: readonly Provider[]): object {
  const { properties, ...schema } = z.toJSONSchema(Document, { io: 'input' }) as { properties: object };
  const reference = {
    type: 'string',
    pattern: '^(env|file|stdin):.+',
    description: 'env:NAME, file:PATH or stdin:NAME',
  };
  return {
    ...schema,
    title: 'A location of Expediter',
    properties: { ...properties, integration: { enum: providers.map(({ integration }) => integration) } },
    allOf: providers.map(({ integration, settings: { properties: fields = {}, ...settings } }) => ({
      if: { properties: { integration: { const: integration } } },
      // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
      then: {
        properties: {
          settings: {
            ...settings,
            $schema: undefined,
            properties: Object.fromEntries(
              Object.entries(fields).map(([name, field]) => [
                name,
                field.writeOnly === true ? { anyOf: [reference, { type: 'array', items: reference }] } : field,
              ]),
            ),
          },
        },
      },
    })),
  };
}
