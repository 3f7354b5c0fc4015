import { readFile, readdir, stat } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
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

/** A value that stands somewhere else: in a variable, in a file, or in a line `NAME=value` of standard input. */
const REFERENCE = /^(?<from>env|file|stdin):(?<name>.+)$/s;

/**
 * Reads all locations below a folder, or of one file: `.yaml` and `.yml`, one document per location.
 * @returns the locations, sorted by id; and what is wrong, with the file and the field, but no value
 */
export async function readLocationFiles(
  path: string,
  providers: readonly Provider[],
): Promise<{ locations: LocationFile[]; problems: string[] }> {
  const problems: string[] = [];
  const locations = new Map<string, LocationFile>();
  let input: Promise<NodeJS.Dict<string>> | undefined;
  const fromInput = (): Promise<NodeJS.Dict<string>> =>
    (input ??= text(process.stdin).then((lines) => parseEnv(lines)));
  for (const file of await filesIn(path)) {
    const name = relative(process.cwd(), file);
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
      const schema = providers.find((each) => each.integration === integration)?.settings;
      const wrong = (field: string, says: string): void =>
        void problems.push(`${name}: ${id}: settings.${field}: ${says}`);
      const resolved = await Promise.all(
        Object.entries(settings).map(async ([field, value]) => {
          const isSecret = schema?.properties?.[field]?.writeOnly === true;
          return [field, await resolveValue(value, { field, isSecret, folder: dirname(file), fromInput, wrong })];
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

async function filesIn(path: string): Promise<string[]> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${path} cannot be read (${error.code})`);
  });
  if (!found.isDirectory()) return [path];
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && /\.ya?ml$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
}

type Resolving = {
  field: string;
  isSecret: boolean;
  folder: string;
  fromInput: () => Promise<NodeJS.Dict<string>>;
  wrong: (field: string, says: string) => void;
};

/** Replaces references by their values, also within lists and objects. */
async function resolveValue(value: unknown, about: Resolving): Promise<unknown> {
  if (Array.isArray(value)) return Promise.all(value.map((each) => resolveValue(each, about)));
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(async ([name, each]) => [name, await resolveValue(each, about)]);
    return Object.fromEntries((await Promise.all(entries)) as [string, unknown][]);
  }
  if (typeof value !== 'string') return value;
  const { field, isSecret, folder, fromInput, wrong } = about;
  const { from, name = '' } = REFERENCE.exec(value)?.groups ?? {};
  switch (from ?? '') {
    case 'env':
      return process.env[name] ?? wrong(field, `the variable ${name} is not set`);
    case 'stdin':
      return (await fromInput())[name] ?? wrong(field, `standard input has no line ${name}=…`);
    case 'file':
      return readFile(resolve(folder, name), 'utf8').then(
        (content) => content.replace(/\r?\n$/, ''),
        (error: NodeJS.ErrnoException) => wrong(field, `the file ${name} cannot be read (${error.code})`),
      );
    default:
      // guard: no-secrets-in-files
      return isSecret ? wrong(field, 'is a secret: write env:NAME, file:PATH or stdin:NAME instead of it') : value;
  }
}

/** The name of the schema that `export` writes next to the files. */
export const SCHEMA_FILE = 'location.schema.json';

/** Writes a location as a file that `apply` reads. @returns the text, and the names of the variables for its secrets */
export function writeLocationFile(shown: ShownLocation): { content: string; variables: string[] } {
  const { locationId: id, integration, name, timeZone, country, groups, contacts, address, backOfficeUrl } = shown;
  const variables: string[] = [];
  const settings = Object.entries(shown.settings).map(([field, setting]) => {
    if ('value' in setting) return [field, setting.value];
    const variable = `${id}_${field}`
      .replaceAll(/([a-z\d])([A-Z])/g, '$1_$2')
      .replaceAll(/\W+/g, '_')
      .toUpperCase();
    variables.push(variable);
    return [field, `env:${variable}`];
  });
  const document = {
    id,
    integration,
    ...(name !== null && { name }),
    ...(timeZone !== null && { timeZone }),
    ...(country !== null && { country }),
    ...(groups.length > 0 && { groups }),
    ...(contacts.length > 0 && { contacts }),
    ...(address !== null && { address }),
    ...(backOfficeUrl !== null && { backOfficeUrl }),
    settings: Object.fromEntries(settings) as object,
  };
  return { content: `# yaml-language-server: $schema=./${SCHEMA_FILE}\n${stringify(document)}`, variables };
}

/** The JSON Schema of a location's file, for editors. */
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
