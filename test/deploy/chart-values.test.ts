/** The sources of the Helm chart. `test/system/chart.test.ts` renders it with Helm. */
import { readdirSync } from 'node:fs';
import { Ajv, type SchemaObject } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { CONFIG_NAMES, SECRETS } from '../../src/config/config.ts';
import { documentedValues, FULL_VALUES } from '../support/chart-values.ts';
import { read, ROOT } from '../support/read-project.ts';

const readChart = (path: string): string => read(`deploy/helm/expediter/${path}`);

type Tree = { [name: string]: unknown };
type Schema = { properties?: Record<string, Schema>; $ref?: string };
const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;

const values = parse(readChart('values.yaml')) as Tree;
const schema = JSON.parse(readChart('values.schema.json')) as Schema;
const accepts = new Ajv({ strict: false, allErrors: true }).compile(schema as SchemaObject);
const namesOfTemplates = readdirSync(`${ROOT}deploy/helm/expediter/templates`);
const templates = namesOfTemplates.map((name) => ({ name, text: readChart(`templates/${name}`) }));

/** As Helm does it: maps are merged, all else is replaced, and null takes a value away. */
function merge(base: Tree, over: Tree): Tree {
  const merged = { ...base };
  for (const [name, value] of Object.entries(over)) {
    const before = merged[name];
    if (value === null) delete merged[name];
    else merged[name] = isTree(before) && isTree(value) ? merge(before, value) : value;
  }
  return merged;
}

const refuses = (over: Tree): string[] => {
  accepts(merge(merge(values, documentedValues()), over));
  return (accepts.errors ?? []).map(({ instancePath, keyword }) => `${instancePath} ${keyword}`);
};

/** The paths to what has no parts of its own. What a user fills with names of their own has none. */
const FILLED = ['config', 'externalSecrets.remoteRefs', 'resources', 'dashboard.labels'];
function leavesOf(tree: Tree, at: string[] = []): string[] {
  return Object.entries(tree).flatMap(([name, value]) => {
    const path = [...at, name];
    return isTree(value) && !FILLED.includes(path.join('.')) ? leavesOf(value, path) : [path.join('.')];
  });
}
function schemaLeaves({ properties = {} }: Schema, at: string[] = []): string[] {
  return Object.entries(properties).flatMap(([name, value]) => {
    const path = [...at, name];
    const parts = value.properties !== undefined && !FILLED.includes(path.join('.'));
    return parts ? schemaLeaves(value, path) : [path.join('.')];
  });
}

describe("the schema of the chart's values", () => {
  const inValues = leavesOf(values).sort();

  it('accepts values without Google', () => {
    expect(refuses({ config: { GOOGLE_CLOUD_PROJECT: null, PUSH_SERVICE_ACCOUNT: null } })).toEqual([]);
  });

  it('accepts the documented values', () => {
    for (const each of [documentedValues(), FULL_VALUES]) {
      accepts(merge(values, each));
      expect(accepts.errors).toBe(null);
    }
    // A part of another chart gets this from Helm.
    expect(refuses({ global: {} })).toEqual([]);
  });

  it.each<[string, Tree, string[]]>([
    ['an unknown name', { replica: 3 }, [' additionalProperties']],
    ['a variable that the service does not have', { config: { POOLSIZE: 5 } }, ['/config additionalProperties']],
    ['a secret among the variables', { config: { DATABASE_URL: 'x' } }, ['/config additionalProperties']],
    ['a port, which the chart sets', { config: { PORT: 1 } }, ['/config additionalProperties']],
    [
      "Google's project without the account of its pushes",
      { config: { PUSH_SERVICE_ACCOUNT: null } },
      ['/config dependencies'],
    ],
    ['an account of pushes without a project', { config: { GOOGLE_CLOUD_PROJECT: null } }, ['/config dependencies']],
    ['no PUBLIC_URL', { config: { PUBLIC_URL: null } }, ['/config required']],
    [
      'a URL with a path, which no route would have',
      { config: { PUBLIC_URL: 'https://a/b' } },
      ['/config/PUBLIC_URL pattern'],
    ],
    [
      'unencrypted keys of follow tokens',
      { config: { FOLLOW_TOKEN_KEYS: '{"keys":[]}' } },
      ['/config/FOLLOW_TOKEN_KEYS pattern'],
    ],
    ['a list as a variable', { config: { MEMBER_ORIGINS: [] } }, ['/config/MEMBER_ORIGINS type']],
    ['no image', { image: { repository: '' } }, ['/image/repository minLength']],
    ['a tag that YAML reads as a number', { image: { tag: 1.2 } }, ['/image/tag type']],
    ['an invalid digest', { image: { digest: 'latest' } }, ['/image/digest pattern']],
    ['no pod', { replicas: 0 }, ['/replicas minimum']],
    ['no Secret', { existingSecret: '' }, ['/existingSecret minLength']],
    [
      'External Secrets without a store',
      { externalSecrets: { enabled: true } },
      ['/externalSecrets/secretStoreRef/name minLength', '/externalSecrets if'],
    ],
    [
      'an unencrypted secret',
      { externalSecrets: { remoteRefs: { SETTINGS_KEY: 'x' } } },
      ['/externalSecrets/remoteRefs/SETTINGS_KEY type'],
    ],
  ])('refuses %s', (_what, over, told) => expect(refuses(over)).toEqual(told));

  it('has exactly the values of values.yaml, which are those that the templates use', () => {
    const used = new Set<string>();
    for (const { text } of templates) {
      // `with` and `range` shorten what follows; the chart keeps a part of its values under another name once each.
      const whole = text
        .replaceAll(/\$config\./g, '.Values.config.')
        .replaceAll(/\$values\./g, '.Values.externalSecrets.');
      for (const [, path = ''] of whole.matchAll(/\.Values((?:\.\w+)+)/g)) used.add(path.slice(1));
    }
    const namedParts = new Set(['externalSecrets', ...[...used].filter((path) => path.startsWith('config.'))]);
    expect([...used].filter((path) => !namedParts.has(path)).sort()).toEqual(
      // The reference to a store is written as a whole.
      [...new Set(inValues.map((path) => path.replace(/^(externalSecrets\.secretStoreRef)\..*/, '$1')))].sort(),
    );
    expect(schemaLeaves(schema).sort()).toEqual([...inValues, 'global'].sort());
  });

  it('has every variable that is not secret, and a reference for each secret', () => {
    const { config, externalSecrets } = schema.properties ?? {};
    const own = ['PORT', 'OPERATOR_PORT'];
    // The keys of members may be a URL, and a URL may have no token: these may be in either place.
    const secret = SECRETS.filter((name) => !/^FOLLOW_TOKEN_KEYS$|_WEBHOOK_URL$/.test(name));
    const open = CONFIG_NAMES.filter((name) => ![...own, ...secret].includes(name));
    expect(Object.keys(config?.properties ?? {}).sort()).toEqual(open.sort());
    expect(Object.keys(externalSecrets?.properties?.['remoteRefs']?.properties ?? {}).sort()).toEqual(
      [...SECRETS].sort(),
    );
    const deployment = readChart('templates/deployment.yaml') + readChart('templates/migrate-job.yaml');
    for (const name of SECRETS) expect(deployment).toContain(name);
  });

  it('the default names of secrets are those that set-up.sh creates', () => {
    const script = read('deploy/google-cloud/set-up.sh');
    const { remoteRefs } = values['externalSecrets'] as { remoteRefs: Record<string, { key: string }> };
    for (const { key } of Object.values(remoteRefs)) expect(script).toContain(key);
  });
});

describe('the chart', () => {
  it('has the version of the package, and the ports of the image', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string };
    expect(parse(readChart('Chart.yaml'))).toMatchObject({ version, appVersion: version });
    const [, exposed] = /^EXPOSE (\d+)$/m.exec(read('Dockerfile')) ?? [];
    const deployment = readChart('templates/deployment.yaml');
    const ports = [...deployment.matchAll(/containerPort: (\d+)/g)].map(([, port]) => port);
    expect(ports).toEqual([exposed, /name: OPERATOR_PORT\n +value: '(\d+)'/.exec(deployment)?.[1]]);
  });

  it('has the alert rules and the dashboard of deploy/monitoring', () => {
    for (const file of ['alerts.yaml', 'dashboard.json']) {
      expect(readChart(`files/${file}`)).toBe(read(`deploy/monitoring/${file}`));
    }
    expect(
      readdirSync(`${ROOT}deploy/helm/expediter/files`, { withFileTypes: true }).filter(
        (each) => !each.isSymbolicLink(),
      ),
    ).toEqual([]);
  });

  it('makes Envoy log no path, query or header, because a path may be a token', () => {
    const [, format = ''] = /accessLog:[^]*? text: "(.*)"$/m.exec(readChart('templates/gateway.yaml')) ?? [];
    expect(format.match(/\w+\(.*?\)/g)).toEqual(['REQ(:METHOD)']);
    expect(format).not.toMatch(/PATH|QUERY|URI/);
  });

  it('routes the same paths through a Gateway and an Ingress', () => {
    const byGateway = [...readChart('templates/gateway.yaml').matchAll(/^ +value: (\/.*)$/gm)].map(([, path]) => path);
    const [, byIngress = ''] = /range list (.*) }}/.exec(readChart('templates/ingress.yaml')) ?? [];
    expect(byIngress.split(' ')).toEqual(byGateway.map((path) => `"${path}"`));
  });

  it('lets Envoy hold more streams than all pods, and close idle connections earlier than the service', () => {
    const gateway = readChart('templates/gateway.yaml');
    const numberOf = (pattern: RegExp, text: string): number => Number(pattern.exec(text)?.[1]?.replaceAll('_', ''));
    const keepAliveMs = numberOf(/KEEP_ALIVE_MS = ([\d_]+)/, read('src/server/listener.ts'));
    expect(numberOf(/connectionIdleTimeout: (\d+)s/, gateway) * 1_000).toBeLessThan(keepAliveMs);
  });
});
