import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import fastifyStatic from '@fastify/static';
import type { FastifyInstance } from 'fastify';

/** As `npm run build:console` leaves it; from `src` and from `dist` it is the same way. */
export const BUILT = fileURLToPath(new URL('../../../dist/console', import.meta.url));
/** Beside the page, with a name that is its own. */
const FILE = /^[\w-]+\.\w+$/;

/**
 * The page and what it is made of. What Vite named after its contents stays in caches for good; everything else is asked
 * for anew. The page finds its way by the path, so whatever names no file is answered with it.
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

  // Not where the request says that it is: it may have been sent with a host in it, or encoded.
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
    // Size and time would not tell two versions apart: npm packs every file with the same time.
    const always = { cacheControl: false, etag: false, lastModified: false };
    return reply.sendFile(FILE.test(name) ? name : 'index.html', built, always);
  });
}
