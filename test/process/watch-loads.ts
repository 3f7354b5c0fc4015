/** The NODE_OPTIONS of a process that writes which modules it loads. `loadsIn` reads them. */
const WATCH = `import { registerHooks } from 'node:module';
registerHooks({ load(url, context, next) { console.error('loads ' + url); return next(url, context); } });`;

export const watchLoads = `--import data:text/javascript,${encodeURIComponent(WATCH)}`;

/** @returns the URLs of the modules that a process has loaded, by its output */
export const loadsIn = (output: string): string[] =>
  output.split('\n').flatMap((line) => (line.startsWith('loads ') ? [line.slice('loads '.length)] : []));
