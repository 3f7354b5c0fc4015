import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { releaseNotes, valuesWithImage } from '../tools/build/build-release.ts';
import { read } from './support/read-project.ts';

type Step = { uses?: string; if?: string; run?: string; with?: Record<string, unknown> };
type Job = {
  uses?: string;
  needs?: string;
  environment?: string;
  container?: { image: string };
  strategy?: { matrix: { node?: number[]; runner?: string[]; include?: object[] } };
  env?: Record<string, unknown>;
  permissions?: Record<string, string>;
  steps?: Step[];
};
type Workflow<Jobs extends string> = { on: object; permissions: object; jobs: Record<Jobs, Job> };
const workflow = parse(read('.github/workflows/ci.yml')) as Workflow<
  'test' | 'process' | 'packages' | 'image' | 'system' | 'compose'
>;
const nightly = parse(read('.github/workflows/nightly.yml')) as Workflow<'harness' | 'properties' | 'chaos'>;
const release = parse(read('.github/workflows/release.yml')) as Workflow<'ci' | 'image' | 'publish'>;
const security = parse(read('.github/workflows/security.yml')) as Workflow<'codeql' | 'secrets' | 'advisories'>;
const steps = [workflow, nightly, release, security].flatMap(({ jobs }) =>
  Object.values<Job>(jobs).flatMap((job) => job.steps ?? []),
);

describe('the workflow', () => {
  it('has a job for each tier of tests, and the first job runs the command of the README', () => {
    const [, command = ''] = /^```sh\n(.* npm test)\n```$/m.exec(read('README.md')) ?? [];
    expect(command).not.toBe('');
    const { test, process, system, compose } = workflow.jobs;
    const runs = ({ steps: all = [] }: Job) => all.map(({ run }) => run).filter((run) => run !== undefined);
    expect(runs(test)[0]).toBe(command);
    expect(runs(process)[0]).toBe('npm ci && npm run test:process');
    expect(system.steps?.at(-1)?.run).toMatch(/&& npm run test:system -- --exclude '\*\*\/compose-up\.test\.ts'$/);
    expect(compose.steps?.at(-1)?.run).toMatch(/ npm run test:system -- test\/system\/compose-up\.test\.ts$/);
    const script = read('.ci/run');
    expect(script.indexOf(command)).toBeGreaterThan(0);
    expect(script.indexOf('npm run test:process')).toBeGreaterThan(script.indexOf(command));
  });

  it('tests on the pinned Node, and on a later Node while the pinned one is not in the path', () => {
    const pinned = Number.parseInt(read('.nvmrc'), 10);
    for (const { strategy, steps: all = [] } of [workflow.jobs.test, workflow.jobs.process]) {
      expect(strategy?.matrix.node).toEqual([pinned, pinned + 2]);
      expect(all.find(({ uses }) => uses?.includes('/setup-node@'))?.with?.['node-version']).toBe('${{ matrix.node }}');
      const [here, next, ...others] = all.filter(({ run }) => run !== undefined);
      expect(others).toEqual([]);
      expect([here?.if, next?.if]).toEqual([`matrix.node == ${pinned}`, `matrix.node != ${pinned}`]);
      expect(next?.run).toBe(here?.run?.replace('npm ci', 'npm ci && rm node_modules/.bin/node'));
    }
  });

  it('runs the harness, chaos and the property tests every night, with a fresh seed that is printed', () => {
    expect(nightly.on).toHaveProperty('schedule');
    expect(nightly.jobs.harness.steps?.at(-1)?.run).toBe('npm ci && npm run test:harness');
    const { env, steps: drawing } = nightly.jobs.properties;
    expect(env).toHaveProperty('SEED', '${{ github.run_id }}');
    expect(drawing?.slice(-2).map(({ run }) => run)).toEqual([
      'echo "SEED=$SEED" && npm test',
      'echo "SEED=$SEED" && npm run test:process -- test/process/hostile',
    ]);
    const runs = nightly.jobs.chaos.steps?.filter(({ run }) => run?.startsWith('npm run chaos')) ?? [];
    expect(runs.length).toBeGreaterThan(0);
    for (const { run } of runs) expect(run).toContain('--seed "$GITHUB_RUN_ID"');
    // It needs the whole history.
    expect(runs.map(({ run }) => run)).toContainEqual(expect.stringContaining('--only versions'));
    expect(nightly.jobs.chaos.steps?.[0]?.with).toMatchObject({ 'fetch-depth': 0 });
  });

  it('checks each pull request for faults, secrets and advisories, and repeats all these checks every week', () => {
    expect(Object.keys(security.on)).toEqual(expect.arrayContaining(['pull_request', 'schedule']));
    const { codeql, secrets, advisories } = security.jobs;
    expect(codeql.steps?.map(({ uses }) => uses?.split('@', 1)[0])).toContain('github/codeql-action/analyze');
    expect(secrets.steps?.at(-1)?.run).toMatch(/-p secretlint@\d+\.\d+\.\d+ /);
    expect(advisories.steps?.at(-1)?.run).toBe('npm audit --omit=dev --audit-level=high');
    expect([secrets.permissions, advisories.permissions]).toEqual([undefined, undefined]);
    expect(codeql.permissions).toEqual({ contents: 'read', 'security-events': 'write' });
  });

  it('uses every action by the hash of a commit', () => {
    expect(steps.filter(({ uses }) => uses !== undefined).length).toBeGreaterThan(5);
    for (const { uses } of steps) if (uses !== undefined) expect(uses).toMatch(/^[\w/-]+@[0-9a-f]{40}$/);
  });
});

describe('a release', () => {
  const { ci, image, publish } = release.jobs;
  const runsOf = (job: Job): string[] => (job.steps ?? []).map(({ uses, run }) => run ?? uses?.split('@', 1)[0] ?? '');
  const placesOf = (job: Job, order: readonly string[]): number[] =>
    order.map((what) => runsOf(job).findIndex((each) => each.includes(what)));
  const expectOrder = (job: Job, order: readonly string[]): void => {
    const places = placesOf(job, order);
    expect(places, order.join(', ')).not.toContain(-1);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  };

  it('needs all tests, and each job can write only what it publishes', () => {
    expect(ci.uses).toBe('./.github/workflows/ci.yml');
    expect(workflow.on).toHaveProperty('workflow_call');
    expect([image.needs, publish.needs]).toEqual(['ci', 'image']);
    expect([workflow.permissions, release.permissions]).toEqual([{ contents: 'read' }, { contents: 'read' }]);
    expect(Object.values<Job>(workflow.jobs).map(({ permissions }) => permissions)).not.toContainEqual(
      expect.anything(),
    );
    expect(image.permissions).toEqual({ contents: 'read', packages: 'write' });
    expect(publish.permissions).toEqual({
      contents: 'write',
      packages: 'write',
      'id-token': 'write',
      attestations: 'write',
    });
    for (const { uses, with: inputs } of steps) {
      if (uses?.startsWith('actions/checkout@')) expect(inputs).toMatchObject({ 'persist-credentials': false });
    }
  });

  it('is made only from a commit of main whose tag is the version', () => {
    // Only rules of the repository can be relied on to stop who writes a workflow: see CONTRIBUTING.md.
    expect([image.environment, publish.environment]).toEqual(['release', 'release']);
    expect(image.steps?.[0]?.with).toMatchObject({ 'fetch-depth': 0 });
    const checks = ['git merge-base --is-ancestor "$GITHUB_SHA" origin/main', 'test "$GITHUB_REF_NAME" = "v$(node -p'];
    expectOrder(image, [...checks, 'npm ci']);
    expect(placesOf(image, checks)[0]).toBe(1);
  });

  it("is built only after the packages' signatures are checked, and runs no install scripts of packages", () => {
    expectOrder(image, ['npm ci --ignore-scripts', 'npm audit signatures', 'docker build', 'docker push']);
    expect(runsOf(publish)).toContain('npm ci --ignore-scripts');
    expect(read('Dockerfile')).toContain('RUN npm ci --ignore-scripts');
  });

  it('publishes the image for both architectures, and builds each on a machine of that architecture', () => {
    const kinds = [
      { architecture: 'amd64', runner: 'ubuntu-24.04' },
      { architecture: 'arm64', runner: 'ubuntu-24.04-arm' },
    ];
    expect(image.strategy?.matrix.include).toEqual(kinds);
    const [joined = ''] = runsOf(publish).filter((run) => run.includes('imagetools create'));
    for (const { architecture } of kinds) expect(joined).toContain(`"$image-${architecture}"`);
    expect(workflow.jobs.image.strategy?.matrix.runner).toEqual(kinds.map(({ runner }) => runner));
  });

  it('attests the origin of image, chart and files, and the contents of the image, before the release is announced', () => {
    expectOrder(publish, ['imagetools create', 'npm run release', 'helm push', 'actions/attest', 'gh release create']);
    const attested = (publish.steps ?? []).filter(({ uses }) => uses?.startsWith('actions/attest@'));
    const subjects = attested.map(
      ({ with: { 'subject-digest': digest, 'subject-path': path } = {} }) => digest ?? path,
    );
    const [ofImage, ofChart] = ['image', 'chart'].map((id) => `\${{ steps.${id}.outputs.digest }}`);
    expect(subjects).toEqual([ofImage, ofImage, ofChart, 'release/*.tgz']);
    expect(attested.findIndex((step) => step.with?.['sbom-path'] === 'release/sbom.cdx.json')).toBe(1);
    for (const { with: inputs } of attested.slice(0, 3)) expect(inputs).toMatchObject({ 'push-to-registry': true });
  });

  it('is built in each pull request with the same commands, which publish nothing', () => {
    expect(workflow.on).toHaveProperty('pull_request');
    const dry = [...runsOf(workflow.jobs.packages), ...runsOf(workflow.jobs.image)].join('\n');
    for (const command of ['npm run release -- --image', 'docker build --pull --provenance=false']) {
      expect(dry).toContain(command);
      expect([...runsOf(image), ...runsOf(publish)].join('\n')).toContain(command);
    }
    expect(dry).not.toMatch(/docker (push|login)|helm push|gh release|npm publish (?!--dry-run)/);
  });

  it('uses only existing npm commands and files', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const commands = steps.flatMap(({ run = '' }) => [...run.matchAll(/npm run (?:--silent )?([\w:]+)/g)]);
    expect(commands.length).toBeGreaterThan(5);
    for (const [, name = ''] of commands) expect(scripts).toHaveProperty([name]);
    const files = [...read('.github/workflows/release.yml').matchAll(/\brelease\/([\w.*${}#-]+\w)/g)];
    for (const [, name = ''] of files)
      expect(['notes.md', 'sbom.cdx.json', '*.tgz', 'expediter-${GITHUB_REF_NAME#v}.tgz']).toContain(name);
  });
});

describe('the files of a release', () => {
  const changelog =
    '# Changelog\n\n## 1.10.0 - 2026-12-01\n\nTen, [told](docs/deploy.md#kubernetes) [so](https://x) [here](#c).\n\n## 1.1.0 - 2026-11-30\n\n### Fixed\n\nOne.\n\n## 1.0.0\n\nNo date.\n';

  it('include notes from its section of the changelog, with absolute links', () => {
    expect(releaseNotes(changelog, '1.1.0')).toBe('### Fixed\n\nOne.\n');
    expect(releaseNotes(changelog, '1.10.0', 'https://forge/v1.10.0')).toBe(
      'Ten, [told](https://forge/v1.10.0/docs/deploy.md#kubernetes) [so](https://x) [here](#c).\n',
    );
    for (const version of ['1.0.0', '1.1', '2.0.0']) expect(() => releaseNotes(changelog, version)).toThrow(version);
  });

  it('include a chart with the image by digest, and all other values and comments unchanged', () => {
    const values = read('deploy/helm/expediter/values.yaml');
    const digest = `sha256:${'0e'.repeat(32)}`;
    const written = valuesWithImage(values, `ghcr.io/acme/expediter@${digest}`);
    const changed = values
      .replace("repository: ''", "repository: 'ghcr.io/acme/expediter'")
      .replace("digest: ''", `digest: '${digest}'`);
    expect(written).toBe(changed);
    expect(() => valuesWithImage(values, 'ghcr.io/acme/expediter:1.0.0')).toThrow('no name@sha256:digest');
  });

  it('exist for the current version: notes, and packages of the same version', () => {
    const versionOf = (file: string): string => (JSON.parse(read(file)) as { version: string }).version;
    const version = versionOf('package.json');
    const { workspaces } = JSON.parse(read('package.json')) as { workspaces: string[] };
    expect(workspaces.map((folder) => versionOf(`${folder}/package.json`))).toEqual(workspaces.map(() => version));
    expect(releaseNotes(read('CHANGELOG.md'), version).length).toBeGreaterThan(50);
    expect(read('Dockerfile')).toContain(`ARG VERSION=${version}\n`);
  });
});

it('.nvmrc, the packages for Linux and Windows and the image have the same version of Node', () => {
  const wanted = read('.nvmrc').trim();
  const { optionalDependencies } = JSON.parse(read('package.json')) as { optionalDependencies: Record<string, string> };
  const pinned = Object.entries(optionalDependencies).filter(([name]) => name.startsWith('node-'));
  // For macOS, npm has no recent Node 24 in both of its packages. There it is the next Node, which CI tests as well.
  const [onMac, others] = [true, false].map((mac) => pinned.filter(([name]) => name.includes('darwin') === mac));
  expect(new Set(others?.map(([, version]) => version))).toEqual(new Set([wanted]));
  expect(onMac?.map(([, version]) => Number.parseInt(version, 10))).toEqual([26, 26]);
  const dockerfile = read('Dockerfile');
  const [, version] = /^ARG NODE_IMAGE=node:([\d.]+)-bookworm-slim@sha256:[0-9a-f]{64}$/m.exec(dockerfile) ?? [];
  expect(version).toBe(wanted);
  const stages = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, base]) => base);
  expect(stages).toEqual(['$NODE_IMAGE', '$NODE_IMAGE']);
  // The tests of the whole run in the same one, and no front end of a builder comes from elsewhere.
  expect(workflow.jobs.system.container?.image).toBe(/^ARG NODE_IMAGE=(.*)$/m.exec(dockerfile)?.[1]);
  expect(dockerfile).not.toMatch(/^# *syntax *=/im);
  for (const [, packages = ''] of dockerfile.matchAll(/apt-get install (.*?)(?:&&|$)/g)) {
    for (const name of packages.split(' ').filter((each) => /^\w/.test(each))) expect(name).toMatch(/=\d/);
  }
  expect((JSON.parse(read('renovate.json')) as { extends: string[] }).extends).toEqual(
    expect.arrayContaining(['docker:pinDigests', 'helpers:pinGitHubActionDigests']),
  );
});
