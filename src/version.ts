import { readFileSync } from 'node:fs';

const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8');

/** Of the service, as its package says. */
export const { version } = JSON.parse(manifest) as { version: string };
