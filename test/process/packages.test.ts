/** The packages that others build on, as npm would publish them, without a network. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { copyProject, link, MODULES, OFFLINE, packPackage, PROJECT, runWell } from '../support/pack-package.ts';

type Entry = { types: string; default: string };
type Manifest = {
  name: string;
  version: string;
  license: string;
  exports: Entry | Record<string, Entry>;
  dependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
};
type Published = { id: string; files: { path: string }[] };

/** All that may be imported, values and types. Others rely on it: to take a name away is a breaking change. */
const EXPORTS: Record<string, string> = {
  'expediter-kit': `
    absentable ageCheck Allowance Authorisation BaseUrl baseUrl callPos callWithToken CancelAnswer CanonicalOrder
    connectByCode Connection Credentials cutText DeliveredBy describeIssues discountsOf entryOf feesOf flattenModifiers
    FulfillmentType GiveUp Grant HttpUrl Id ItemMap joinName KitchenOrder kitchenReport KitchenReport limitRate minorDigits minutesIfAny Modifier NeedsOperator neverTaken
    NOT_TAKEN NotAuthentic oauthGrant oauthRevoke orderNote OrderRef parseJson pauseMinutes Poison PosAnswer PosContext PosRequest Provider quoteRefusal
    readShape readState REASON_CODES ReasonCode reasonInWords refuseNameless requestedId routeOf Secret SHOWN splitName Status StatusEvent STATUSES takeOff taxesOnTop
    idIfAny ifAny textIfAny timeIfAny toDecimal tooLate TryAgain tryAgainWith verifyHmac Webhook WebhookAuth`,
  'expediter-kit/contract': `
    deliverWebhook Delivery Estimate Fault HttpServer inMemoryCredentials jsonIn Kitchen providerContract ProviderFixtures
    readBody Rejection sampleOrder SampleOptions sendFault sendJson serveHttp SignedWebhook Simulator SimulatorOptions
    StartSimulator Ticket TicketField TicketLine TicketModifier`,
  'expediter-platform': `
    CanonicalOrder Cancelled ErrorCode FetchAnswer FetchContext FetchModule fromHundredths FulfillmentType joinName joinStreet LeftOut mapEnum mapLocation MappingCode MappingError
    minorDigits minorUnits Modifier OrderError OrderInput OrderModule phoneInCountry PlatformError QueryModule readCanonicalOrder ReadOrder roundTogether skip Skipped
    splitName splitStreet timeInZone timeSinceEpoch toDecimal toMinorUnits`,
  'expediter-follow': `follow Kind Options State Update`,
};

const manifestOf = (folder: string) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest;
const root = manifestOf(PROJECT) as Manifest & { workspaces: string[] };

let folder: string;
let published: Record<string, Published>;
/** By name, the folder of what was packed. */
const packed: Record<string, string> = {};

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'packages-'));
  const project = copyProject(join(folder, 'project'));
  const dryRun = ['publish', '--dry-run', '--workspaces', '--json', ...OFFLINE];
  // One object a package, one after the other.
  const reports = (await runWell(project, 'npm', dryRun)).split(/(?<=^\})\n(?=\{)/m);
  published = Object.assign({}, ...reports.map((report) => JSON.parse(report) as typeof published));
  for (const workspace of root.workspaces) {
    const { name } = manifestOf(join(project, workspace));
    packed[name] = await packPackage(join(project, workspace), join(folder, 'node_modules', name));
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The packages' entries: what is imported, and the files behind it. */
function entriesOf({ name, exports }: Manifest): [string, Entry][] {
  const isOne = (all: Manifest['exports']): all is Entry => typeof all.types === 'string';
  return isOne(exports)
    ? [[name, exports]]
    : Object.entries(exports).map(([path, entry]) => [path.replace('.', name), entry]);
}

/** @param text of a file of types. `export *` counts as a name of its own */
function namesIn(text: string): string[] {
  const lists = [...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, list = '']) => list.split(','));
  const declared = [...text.matchAll(/^export (?:declare )?(?:(?:type|function|const|class) (\w+)|(?:type )?(\*))/gm)];
  const named = lists.map((each) => each.trim().replace(/^type /, '')).filter((each) => each !== '');
  return [...named, ...declared.map(([, name, star]) => name ?? star ?? '')];
}

describe('each package', () => {
  it.each(root.workspaces)('%s is published with a licence, a page and types, and with nothing else', (workspace) => {
    const manifest = manifestOf(join(PROJECT, workspace));
    const { name, version, license } = manifest;
    expect({ version, license }).toEqual({ version: root.version, license: 'Apache-2.0' });
    expect(published[name]?.id).toBe(`${name}@${version}`);
    const files = published[name]?.files.map(({ path }) => path) ?? [];
    expect(files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'package.json']));
    for (const file of files) expect(file).toMatch(/^(LICENSE|README\.md|package\.json)$|\.(d\.ts|js)$/);
    for (const [, entry] of entriesOf(manifest)) {
      for (const path of [entry.types, entry.default]) expect(files).toContain(path.replace('./', ''));
    }
  });

  it('exports exactly the listed names', () => {
    const byName = (names: string[]) => names.toSorted((a, b) => a.localeCompare(b));
    const found = Object.values(packed).flatMap((at) =>
      entriesOf(manifestOf(at)).map(([entry, { types }]) => [
        entry,
        byName(namesIn(readFileSync(join(at, types), 'utf8'))),
      ]),
    );
    const wanted = Object.entries(EXPORTS).map(([entry, names]) => [entry, byName(names.trim().split(/\s+/))]);
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(wanted));
  });

  it('declares exactly the packages that its files import', () => {
    for (const at of Object.values(packed)) {
      const { name, dependencies, peerDependencies } = manifestOf(at);
      const imported = (published[name]?.files ?? [])
        .filter(({ path }) => path.endsWith('.js'))
        .flatMap(({ path }) => [
          ...readFileSync(join(at, path), 'utf8').matchAll(/(?:from |(?:import|require)\()'([^.'][^']*)'/g),
        ])
        .map(([, from = '']) => /^(?:@[^/]+\/)?[^/]+/.exec(from)?.[0])
        .filter((from) => from?.startsWith('node:') === false);
      const needed = { ...dependencies, ...peerDependencies };
      expect(new Set(imported), name).toEqual(new Set(Object.keys(needed)));
      for (const [each, range] of Object.entries(needed)) {
        expect(range, each).toBe(`^${manifestOf(join(MODULES, each)).version}`);
      }
    }
  });
});

describe('a project outside the repository', () => {
  it('can test its mapper with the packages, and compiles with the documented compiler options', async () => {
    const mapper = join(folder, 'mapper');
    cpSync(join(PROJECT, 'examples/platform-mapper'), mapper, { recursive: true });
    writeFileSync(join(mapper, 'package.json'), '{"type": "module"}');
    writeFileSync(
      join(mapper, 'page.ts'),
      `import { follow, type State } from 'expediter-follow';
       const seen: State[] = [];
       follow({ url: '/follow', token: () => 't', onUpdate() {}, onState: (state) => seen.push(state) })();`,
    );
    const { 'expediter-kit': _, ...ours } = packed;
    const guide = readFileSync(join(PROJECT, 'docs/connect-your-platform.md'), 'utf8');
    for (const [file, heading] of [
      ['rest.ts', '### A platform with REST'],
      ['headers.ts', '### Tokens that expire'],
      ['tsconfig.json', '### Tests and types'],
      ['reader.ts', '### TypeScript'],
    ]) {
      const [, shown = ''] = new RegExp(`^${heading}$.*?^\`\`\`\\w+\n(.*?)^\`\`\``, 'ms').exec(guide) ?? [];
      writeFileSync(join(mapper, file ?? ''), shown);
    }
    expect(readFileSync(join(PROJECT, 'tsconfig.json'), 'utf8')).toContain('"*.ts"'); // For one in the checkout.
    link(mapper, ['zod', 'libphonenumber-js', '@types/node', 'graphql', '@google-cloud/pubsub'], ours);
    await Promise.all([
      runWell(mapper, process.execPath, ['--test', 'map-order.test.ts']),
      runWell(mapper, join(MODULES, '.bin/tsc'), []),
    ]);
  });
});
