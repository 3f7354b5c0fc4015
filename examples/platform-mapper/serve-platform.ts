/** Serves the sample purchases: `node examples/platform-mapper/serve-platform.ts`, until Ctrl-C. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { buildSchema, graphql } from 'graphql';
import { purchases } from './purchases.ts';

export const API_KEY = 'feast-key';

const schema = buildSchema(readFileSync(new URL('schema.graphql', import.meta.url), 'utf8'));

/** @returns `byCode`: its purchases, of ten minutes ago, which may be changed */
export async function servePlatform(): Promise<{ url: string; byCode: Map<string, object>; stop(): Promise<void> }> {
  const now = Date.now();
  const tomorrow = new Date(now + 86_400_000).toISOString().slice(0, 10);
  const byCode = new Map<string, object>(
    purchases.map((purchase) => [
      purchase.code,
      {
        ...purchase,
        createdTs: Math.floor(now / 1000) - 600,
        wantedFor: purchase.wantedFor && `${tomorrow} ${purchase.wantedFor.slice(11)}`,
      },
    ]),
  );
  const server = createServer((request, response) => {
    void (async () => {
      const isKnown = request.headers['x-api-key'] === API_KEY;
      const { query, variables } = (await json(request)) as { query: string; variables?: Record<string, unknown> };
      const answer = isKnown
        ? await graphql({
            schema,
            source: query,
            variableValues: variables,
            rootValue: { purchase: ({ code }: { code: string }) => byCode.get(code) ?? null },
          })
        : { errors: [{ message: 'which key?', extensions: { code: 'WRONG_KEY' } }] };
      response.setHeader('content-type', 'application/json').end(JSON.stringify(answer));
    })();
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const { port } = server.address() as AddressInfo;
  return {
    byCode,
    url: `http://127.0.0.1:${port}/graphql`,
    stop: () =>
      new Promise((stopped) => {
        server.close(() => stopped());
        server.closeAllConnections();
      }),
  };
}

if (import.meta.main) {
  const { url } = await servePlatform();
  process.stdout.write(`export ORDER_API_URL=${url} ORDER_API_TOKEN=${API_KEY}\n`);
}
