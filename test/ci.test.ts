import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');

type Step = { uses?: string; if?: string; run?: string; with?: Record<string, unknown> };
type Job = {
  uses?: string;
  needs?: string;
  environment?: string;
  container?: { image: string };
  strategy?: { matrix: { node: number[] } };
  permissions?: Record<string, string>;
  steps?: Step[];
};
type Workflow<Jobs extends string> = { on: object; permissions: object; jobs: Record<Jobs, Job> };
const workflow = parse(read('.github/workflows/ci.yml')) as Workflow<'test' | 'process' | 'system'>;
const nightly = parse(read('.github/workflows/nightly.yml')) as Workflow<'harness' | 'chaos'>;
const release = parse(read('.github/workflows/release.yml')) as Workflow<'ci' | 'image'>;
const security = parse(read('.github/workflows/security.yml')) as Workflow<'codeql' | 'secrets' | 'advisories'>;
const steps = [workflow, nightly, release, security].flatMap(({ jobs }) =>
  Object.values<Job>(jobs).flatMap((job) => job.steps ?? []),
);

describe('the workflow', () => {
  it('has a job for each tier of tests, the first with the command of the README', () => {
    const [, command = ''] = /^```sh\n(.* npm test)\n```$/m.exec(read('README.md')) ?? [];
    expect(command).not.toBe('');
    const { test, process, system } = workflow.jobs;
    const runs = ({ steps: all = [] }: Job) => all.map(({ run }) => run).filter((run) => run !== undefined);
    expect(runs(test)[0]).toBe(command);
    expect(runs(process)[0]).toBe('npm ci && npm run test:process');
    expect(system.steps?.at(-1)?.run).toMatch(/&& npm run test:system$/);
    const script = read('.ci/run');
    expect(script.indexOf(command)).toBeGreaterThan(0);
    expect(script.indexOf('npm run test:process')).toBeGreaterThan(script.indexOf(command));
  });

  it('tests on the Node that is pinned, and on the next one, where the pinned one is out of the way', () => {
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

  it('runs the test machinery and chaos every night, with a fresh seed that is printed', () => {
    expect(nightly.on).toHaveProperty('schedule');
    expect(nightly.jobs.harness.steps?.at(-1)?.run).toBe('npm ci && npm run test:harness');
    const runs = nightly.jobs.chaos.steps?.filter(({ run }) => run?.startsWith('npm run chaos')) ?? [];
    expect(runs.length).toBeGreaterThan(0);
    for (const { run } of runs) expect(run).toContain('--seed "$GITHUB_RUN_ID"');
  });

  it('looks for faults, secrets and advisories in what somebody proposes, and every week in what was not changed', () => {
    expect(Object.keys(security.on)).toEqual(expect.arrayContaining(['pull_request', 'schedule']));
    const { codeql, secrets, advisories } = security.jobs;
    expect(codeql.steps?.map(({ uses }) => uses?.split('@', 1)[0])).toContain('github/codeql-action/analyze');
    expect(secrets.steps?.at(-1)?.run).toMatch(/-p secretlint@\d+\.\d+\.\d+ /);
    expect(advisories.steps?.at(-1)?.run).toBe('npm audit --omit=dev --audit-level=high');
    expect([secrets.permissions, advisories.permissions]).toEqual([undefined, undefined]);
    expect(codeql.permissions).toEqual({ contents: 'read', 'security-events': 'write' });
  });

  it('uses actions by their commit, which Renovate moves, as it does the digests of images', () => {
    expect(steps.filter(({ uses }) => uses !== undefined).length).toBeGreaterThan(5);
    for (const { uses } of steps) if (uses !== undefined) expect(uses).toMatch(/^[\w/-]+@[0-9a-f]{40}$/);
  });
});

describe('a release', () => {
  const { ci, image } = release.jobs;
  const runs = (image.steps ?? []).map(({ uses, run }) => run ?? uses?.split('@', 1)[0] ?? '');
  const at = (what: string): number => runs.findIndex((each) => each.includes(what));

  it('follows all of the tests, and may write nothing but the image and what is attested of it', () => {
    expect(ci.uses).toBe('./.github/workflows/ci.yml');
    expect(workflow.on).toHaveProperty('workflow_call');
    expect(image.needs).toBe('ci');
    expect([workflow.permissions, release.permissions]).toEqual([{ contents: 'read' }, { contents: 'read' }]);
    expect(image.permissions).toEqual({
      contents: 'read',
      packages: 'write',
      'id-token': 'write',
      attestations: 'write',
    });
  });

  it('is of a commit of main alone, and waits for who may release', () => {
    // Only rules of the repository can be relied on to stop who writes a workflow: see CONTRIBUTING.md.
    expect(image.environment).toBe('release');
    expect(image.steps?.[0]?.with).toMatchObject({ 'fetch-depth': 0 });
    const places = [at('git merge-base --is-ancestor "$GITHUB_SHA" origin/main'), at('npm ci')];
    expect(places[0]).toBe(1);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  });

  it('is built once the signatures of all packages hold, of which none ran a script', () => {
    const order = ['npm ci --ignore-scripts', 'npm audit signatures', 'docker build', 'docker push', 'actions/attest'];
    const places = order.map(at);
    expect(places).not.toContain(-1);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(read('Dockerfile')).toContain('RUN npm ci --ignore-scripts');
  });

  it('says of the image, by its digest, where it comes from and what is in it', () => {
    const attested = (image.steps ?? []).filter(({ uses }) => uses?.startsWith('actions/attest@'));
    expect(attested.map((step) => step.with?.['sbom-path'])).toEqual([undefined, 'sbom.cdx.json']);
    for (const step of attested) {
      expect(step.with).toMatchObject({
        'subject-digest': '${{ steps.image.outputs.digest }}',
        'push-to-registry': true,
      });
    }
    expect(runs[at('sbom.cdx.json')]).toBe('npm run --silent sbom >sbom.cdx.json');
  });
});

it('.nvmrc, the packages for Linux and Windows and the image have one Node, the image by its digest', () => {
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
