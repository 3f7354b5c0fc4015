/**
 * `npm run release -- --image ghcr.io/owner/expediter@sha256:…`: makes what a release has besides its image in `release/`:
 * the notes of the changelog, the bill of materials, the packages, and the chart with this image. Needs Helm.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { parseDocument } from 'yaml';
import { sbom } from './write-sbom.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

/**
 * The section of one version in the changelog, without its heading.
 * @param files the URL of the files of that version. The changelog's links to files begin with it then.
 * @throws if the version has no section with a date, or an empty one
 */
export function releaseNotes(changelog: string, version: string, files?: string): string {
  const [, ...sections] = changelog.split(/^## /m);
  const heading = new RegExp(`^${version.replaceAll('.', '\\.')} - \\d{4}-\\d\\d-\\d\\d\\n`);
  const section = sections
    .find((each) => heading.test(each))
    ?.replace(heading, '')
    .trim();
  if (!section) throw new Error(`CHANGELOG.md has no section "## ${version} - YYYY-MM-DD" with text`);
  return `${files === undefined ? section : section.replaceAll(/\]\((?!\w+:|#)/g, `](${files}/`)}\n`;
}

/**
 * The values of the chart with an image in them.
 * @param image a name and a digest, `ghcr.io/owner/expediter@sha256:…`
 * @throws if the image has no digest
 */
export function valuesWithImage(values: string, image: string): string {
  const [, repository, digest] = /^([^@\s]+)@(sha256:[0-9a-f]{64})$/.exec(image) ?? [];
  if (digest === undefined) throw new Error(`${image} is no name@sha256:digest`);
  const document = parseDocument(values);
  document.setIn(['image', 'repository'], repository);
  document.setIn(['image', 'digest'], digest);
  return document.toString({ lineWidth: 0 });
}

function packageChart(image: string, to: string): void {
  const folder = mkdtempSync(join(tmpdir(), 'chart-'));
  try {
    const chart = join(folder, 'expediter');
    // The chart links to the rules and the dashboard. The copy's links are absolute, and Helm packs what they lead to.
    cpSync(join(PROJECT, 'deploy/helm/expediter'), chart, { recursive: true });
    const file = join(chart, 'values.yaml');
    writeFileSync(file, valuesWithImage(readFileSync(file, 'utf8'), image));
    execFileSync('helm', ['package', chart, '--destination', to], { stdio: ['ignore', 'inherit', 'inherit'] });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { image: { type: 'string' }, files: { type: 'string' } } });
  if (values.image === undefined) throw new Error('--image is required');
  const { version } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')) as { version: string };
  const to = join(PROJECT, 'release');
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to);
  const changelog = readFileSync(join(PROJECT, 'CHANGELOG.md'), 'utf8');
  writeFileSync(join(to, 'notes.md'), releaseNotes(changelog, version, values.files));
  writeFileSync(join(to, 'sbom.cdx.json'), `${JSON.stringify(sbom(), null, 2)}\n`);
  const pack = ['pack', '--workspaces', '--pack-destination', to];
  execFileSync('npm', pack, { cwd: PROJECT, stdio: ['ignore', 'ignore', 'inherit'] });
  packageChart(values.image, to);
}
