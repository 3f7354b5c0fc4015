/**
 * `node tools/build/build-service.ts`: bundles the service with most packages into `dist`. Node then loads 110 files instead
 * of 1,500, and the start until listening takes two thirds of the processor time. V8 keeps the text of all loaded files in
 * memory, so they have no comments.
 */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SRC = `${ROOT}src/`;
/** These packages look for files next to their own, so they stay outside the bundle. */
const OUTSIDE = ['@fastify/swagger', 'node-pg-migrate', 'pino'];
/** They name folders of `.proto` files next to their own, but Pub/Sub's client reads none: its definitions are JSON. */
const PROTO_FOLDERS = /\/node_modules\/(google-gax|@grpc\/grpc-js)\//;
/** Classes of Google's messages, in 6 MB of generated code. The clients make messages by the JSON, without these classes. */
const GENERATED = /\/node_modules\/(google-gax|@google-cloud\/pubsub(-api)?)\/build\/protos\/\w+\.js$/;

export default async function buildServer(folder = `${ROOT}dist`): Promise<void> {
  const { output } = await build({
    cwd: ROOT,
    input: { main: 'src/main.ts', cli: 'src/cli.ts', 'platform-kit': 'src/platform-kit.ts' },
    platform: 'node',
    external: [...OUTSIDE, 'pg-native'],
    // The bundle is one flat folder. This gives `import.meta.url` of our files the folders that it has in `src`.
    plugins: [
      {
        name: 'places',
        transform(code, id) {
          if (!id.startsWith(SRC) || !code.includes('import.meta.url')) return undefined;
          const place = relative(SRC, id).replace(/ts$/, 'js');
          return { code: code.replaceAll('import.meta.url', `new URL('./${place}', import.meta.url).href`), map: null };
        },
      },
      {
        name: 'pubsub',
        transform(code, id) {
          if (GENERATED.test(id)) return { code: 'module.exports = {};', map: null };
          return PROTO_FOLDERS.test(id) ? { code: code.replaceAll('__dirname', `''`), map: null } : undefined;
        },
      },
    ],
    output: {
      sourcemap: true,
      sourcemapExcludeSources: true,
      comments: { legal: true, jsdoc: false, annotation: false },
      entryFileNames: '[name].js',
      chunkFileNames: '[name]-[hash].js',
    },
    write: false,
    logLevel: 'warn',
  });
  await mkdir(folder, { recursive: true });
  const before = (await readdir(folder)).filter((name) => /\.js(\.map)?$/.test(name));
  for (const name of before) await rm(join(folder, name));
  for (const file of output) {
    if (file.type !== 'chunk') continue;
    const { fileName, map, moduleIds } = file;
    const code = toAscii(file.code);
    if (/(?<!typeof )\b__dirname\b/.test(code)) {
      throw new Error(`a package looks for files next to its own: add it to OUTSIDE. It is in ${fileName}`);
    }
    // Node reads a source map when it loads the file. Maps of packages would only slow down the start.
    const isOurs = moduleIds.some((id) => id.startsWith(SRC));
    await writeFile(join(folder, fileName), isOurs ? code : code.replace(/\n\/\/# sourceMappingURL=.*$/, '\n'));
    if (isOurs) await writeFile(join(folder, `${fileName}.map`), JSON.stringify(map));
  }
}

/** V8 takes two bytes for each character of a text if a single one is outside Latin-1. */
function toAscii(code: string): string {
  return code.replaceAll(/\\.|[^\0-\x7f]/gs, (found) => {
    const last = found.slice(-1);
    return last > '\x7f' ? `\\u${last.charCodeAt(0).toString(16).padStart(4, '0')}` : found;
  });
}

if (import.meta.main) await buildServer();
