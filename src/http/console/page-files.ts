import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';

/** The folder that `npm run build:console` writes. The path is the same from `src` and from `dist`. */
export const BUILT = fileURLToPath(new URL('../../../dist/console', import.meta.url));
/** The path of a file beside the page. */
const FILE = /^[\w-]+\.\w+$/;

/**
 * Serves the page and its files. Files that Vite named by their contents are cached for good; all others are
 * revalidated. The page routes by path, so any path that names no file gets the page.
 *
 * @param built the folder
 */
export async function pageFiles(scope: FastifyInstance, built: string): Promise<void> {
  await scope.register(fastifyStatic, {
    root: `${built}/assets`,
    prefix: '/assets/',
    preCompressed: true,
    index: false,
    maxAge: '365d',
    immutable: true,
    suppressWarning: true,
  });

  // The path is fixed: the request's own may include a host or be encoded.
  scope.get('', async ({ url }, reply) => reply.redirect(`/console/${/\?.*/s.exec(url)?.[0] ?? ''}`, 308));

  scope.get<{ Params: { '*': string } }>('/*', async (request, reply) => {
    reply.header('cache-control', 'no-cache');
    if (!existsSync(`${built}/index.html`)) {
      return reply
        .code(503)
        .type('text/plain; charset=utf-8')
        .send('The console was not built: run `npm run build:console`. The operator API does without it.\n');
    }
    const name = request.params['*'];
    // Size and time do not tell versions apart: npm packs every file with the same time.
    const always = { cacheControl: false, etag: false, lastModified: false };
    return reply.sendFile(FILE.test(name) ? name : 'index.html', built, always);
  });
}
