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

  scope.get('', async (request, reply) => reply.redirect(request.url.replace('/console', '/console/'), 308));

  scope.get<{ Params: { '*': string } }>('/*', async (request, reply) => {
    reply.header('cache-control', 'no-cache');
    if (!existsSync(`${built}/index.html`)) {
      return reply
        .code(503)
        .type('text/plain; charset=utf-8')
        .send('The console was not built: run `npm run build:console`. The operator API does without it.\n');
    }
    const name = request.params['*'];
    return reply.sendFile(FILE.test(name) ? name : 'index.html', built, { cacheControl: false });
  });
}
