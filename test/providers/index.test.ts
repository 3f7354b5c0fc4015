import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { settingsSchema, vendorName } from '../../src/core/locations/describe-settings.ts';
import { loadProviders, registry } from '../../src/providers/index.ts';
import { Secret } from '../../src/providers/shared-settings.ts';
import { SIMULATORS } from '../../world/pos/index.ts';

const acme = `{ integration: 'acme', settings: { safeParse() {} }, deduplicates: true, createOrder() {}, translateWebhook() {} }`;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'providers-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function moduleOf(name: string, text: string): Promise<string> {
  const path = join(folder, `${name}.mjs`);
  await writeFile(path, text);
  return path;
}

describe('the registry', () => {
  it('has every provider under its integration name', () => {
    for (const [name, provider] of registry) expect(provider.integration).toBe(name);
    expect(registry.has('standard')).toBe(true);
    expect(registry.get('constructor')).toBeUndefined();
  });

  it.each([...registry.keys()])('%s has a simulator, a test file, a page and a row in the README', async (name) => {
    expect(Object.keys(SIMULATORS)).toContain(name);
    await access(new URL(`${name}.test.ts`, import.meta.url));
    const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
    const page = `docs/providers/${name}.md`;
    expect(readme).toMatch(new RegExp(`^\\| \`${name}\` +\\|.*\\]\\(${page}\\)`, 'm'));
    await access(new URL(`../../${page}`, import.meta.url));
  });

  it.each([...registry])('%s describes every field of its settings', (_name, provider) => {
    const { properties } = settingsSchema(provider) as { properties: Record<string, { description?: string }> };
    const usual = Secret.meta()?.description;
    const fields = Object.entries(properties);
    expect(fields.filter(([, { description = usual }]) => description === usual)).toEqual([]);
    expect(new Set(fields.map(([, { description }]) => description)).size).toBe(fields.length);
  });

  it('has a name for people of each provider, and the id of an unknown one', () => {
    for (const name of registry.keys()) expect(vendorName(registry, name)).toMatch(/^[A-Z]/);
    expect(vendorName(registry, 'acme')).toBe('acme');
  });

  it('has the providers of extra modules in addition to the built-in providers', async () => {
    const loaded = await loadProviders([await moduleOf('acme', `export default ${acme}`)]);
    expect(loaded.get('acme')).toHaveProperty('deduplicates', true);
    expect([...loaded.keys()]).toEqual([...registry.keys(), 'acme']);
    expect(registry.has('acme')).toBe(false);
  });

  it.each([
    ['no default export', 'export const x = 1', 'is not a provider object'],
    [
      'a name that does not fit a URL',
      `export default { ...${acme}, integration: 'Acme POS' }`,
      'needs an "integration"',
    ],
    ['no settings', `export default { ...${acme}, settings: {} }`, 'needs "settings"'],
    [
      'a text as deduplicatesForS',
      `export default { ...${acme}, deduplicatesForS: '2 days' }`,
      'that is not a positive number of seconds',
    ],
    ...["'30'", '0', '121', 'NaN'].map((seconds): [string, string, string] => [
      `an attempt of ${seconds}`,
      `export default { ...${acme}, attemptWithinS: ${seconds} }`,
      'that is not a number of seconds up to 120',
    ]),
    ['no deduplicates', `export default { ...${acme}, deduplicates: undefined }`, 'needs "deduplicates"'],
    ['no createOrder', `export default { ...${acme}, createOrder: 1 }`, 'needs a function "createOrder"'],
    [
      'no translateWebhook',
      `export default { ...${acme}, translateWebhook: 1 }`,
      'needs a function "translateWebhook"',
    ],
    ['a wrong findOrder', `export default { ...${acme}, findOrder: 1 }`, '"findOrder"'],
    ['a wrong readStatus', `export default { ...${acme}, readStatus: 1 }`, '"readStatus"'],
    ['no webhookAuth', `export default { ...${acme}, webhookAuth: { kind: 'moon' } }`, '"webhookAuth"'],
    ['a wrong check', `export default { ...${acme}, check: 1 }`, '"check"'],
    [
      'the name of a built-in provider',
      `export default { ...${acme}, integration: 'standard' }`,
      'a provider "standard" already exists',
    ],
    ['no JavaScript', 'not {', 'cannot be loaded'],
  ])('refuses a module with %s', async (name, text, message) => {
    const path = await moduleOf(name.replaceAll(' ', '-'), text);
    const error = await loadProviders([path]).catch((error: unknown) => error as Error);
    expect(error).toBeInstanceOf(Error);
    expect((error as Error).message).toContain(`PROVIDER_MODULES: ${path}`);
    expect((error as Error).message).toContain(message);
  });

  it('refuses a module that does not exist', async () => {
    await expect(loadProviders(['@nobody/no-provider'])).rejects.toThrow(
      'PROVIDER_MODULES: @nobody/no-provider cannot be loaded',
    );
  });
});
