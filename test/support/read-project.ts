import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The folder of the project. It ends with a slash. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The text of a file, by its path in the project. */
export const read = (path: string): string => readFileSync(`${ROOT}${path}`, 'utf8');
