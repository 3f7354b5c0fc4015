import { readFileSync, readdirSync } from 'node:fs';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { request } from 'node:http';
import fastify from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import buildConsole from '../../../tools/build/build-console.ts';
import { consolePackages } from '../../../tools/build/runtime-packages.ts';
import { BUILT, pageFiles } from '../../../src/http/console/page-files.ts';
import { sendAsIs, type OperatorAnswer } from '../../../world/system/ask-operator.ts';
import { OWN_PAGE, logIn, sendLogin } from '../../../world/system/log-in.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';

const LIMIT_BYTES = 170_000;
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
  "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

await buildConsole();
const read = (name: string): string => readFileSync(`${BUILT}/${name}`, 'utf8');
const names = readdirSync(BUILT, { recursive: true, encoding: 'utf8' });
const asset = names.find((name) => /^assets\/index-.*\.js$/.test(name)) ?? '';

let stage: Stage;
let url: string;

beforeAll(async () => {
  stage = await startStage();
  // Paths are to come as they are.
  url = await stage.listen();
});
afterAll(() => stage?.stop());

const ask = (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<OperatorAnswer> =>
  sendAsIs(url, path, { method, headers });

/** The bytes as they are sent. */
function bytesOf(path: string, headers: Record<string, string>): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    request(`${url}${path}`, { headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve(Buffer.concat(chunks)));
    })
      .on('error', reject)
      .end();
  });
}

describe("the console's page", () => {
  it.each([
    '/console/',
    '/console/orders',
    '/console/orders/order-4711',
    '/console/orders/a%2Fb%20c',
    '/console/orders/..%2F..%2Fpackage.json',
    '/console/orders/%5Cwindows',
    '/console/locations/club.1?tab=tokens',
    '/console/index.html',
  ])('is served at %s, and is revalidated each time', async (path) => {
    const { status, headers, text } = await ask(path);
    expect({ status, type: headers.get('content-type'), cached: headers.get('cache-control') }).toEqual({
      status: 200,
      type: 'text/html; charset=utf-8',
      cached: 'no-cache',
    });
    expect(text).toBe(read('index.html'));
    // Of packed files size and time are those of the version before, and the page names assets that have gone with it.
    expect([headers.get('etag'), headers.get('last-modified')]).toEqual([null, null]);
  });

  it('is where /console redirects to', async () => {
    const { status, headers } = await ask('/console');
    expect([status, headers.get('location')]).toEqual([308, '/console/']);
    const filtered = await ask('/console?location=club-1&text=a%26b');
    expect(filtered.headers.get('location')).toBe('/console/?location=club-1&text=a%26b');
    for (const path of ['http://evil.example.com/console', '/%63onsole', '/console#//evil.example.com']) {
      expect((await ask(path)).headers.get('location'), path).toBe('/console/');
    }
  });

  it('is where a browser comes from the address of the service, and a program gets 404 there', async () => {
    const { status, headers } = await ask('/', { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' });
    expect([status, headers.get('location')]).toEqual([302, '/console/']);
    const unknown = await ask('/none');
    for (const accept of ['*/*', 'application/json']) {
      const { text, ...answer } = await ask('/', { accept });
      expect([answer.status, text.replace(/req-\w+/, '')], accept).toEqual([404, unknown.text.replace(/req-\w+/, '')]);
    }
    expect((await ask('/', {}, 'POST')).status).toBe(404);
  });

  it('has no foreign URL and no inline script or style', () => {
    const html = read('index.html');
    expect(html).not.toMatch(/(?:src|href)="(?!\/console\/)/);
    expect(html).not.toMatch(/<script(?![^>]* src=)|<style|style="|\son\w+=/);
    for (const [, path = ''] of html.matchAll(/(?:src|href)="\/console\/([^"]+)"/g)) expect(names).toContain(path);
  });

  it('answers HEAD, and answers 404 to methods that write', async () => {
    expect(await ask('/console/', {}, 'HEAD')).toMatchObject({ status: 200, text: '' });
    expect(await ask(`/console/${asset}`, {}, 'HEAD')).toMatchObject({ status: 200, text: '' });
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      for (const path of ['/console/', '/console/orders/x', `/console/${asset}`]) {
        expect((await ask(path, OWN_PAGE, method)).status, `${method} ${path}`).toBe(404);
      }
    }
  });
});

describe('an asset of the console', () => {
  it('may be cached for a year, because its name changes with its contents', async () => {
    const { status, headers, text } = await ask(`/console/${asset}`);
    expect([status, text]).toEqual([200, read(asset)]);
    expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(headers.get('content-type')).toMatch(/^(text|application)\/javascript; charset=utf-8$/);
  });

  it('contains no path of the machine that built it', () => {
    for (const name of names.filter((each) => each.endsWith('.js'))) {
      expect(read(name), name).not.toContain(process.cwd());
    }
  });

  it('is sent in a compressed encoding that the browser accepts', async () => {
    for (const path of [asset, 'index.html', 'licences.txt']) {
      const br = await bytesOf(`/console/${path}`, { 'accept-encoding': 'gzip, deflate, br, zstd' });
      expect(brotliDecompressSync(br).toString(), path).toBe(read(path));
      const gzip = await bytesOf(`/console/${path}`, { 'accept-encoding': 'gzip' });
      expect(gunzipSync(gzip).toString(), path).toBe(read(path));
      const { headers } = await ask(`/console/${path}`, { 'accept-encoding': 'br' });
      expect([headers.get('content-encoding'), headers.get('vary')]).toEqual(['br', 'accept-encoding']);
      expect(headers.get('content-type')).not.toBe('application/octet-stream');
    }
  });

  it("that does not exist is answered 404 and not with the console's page", async () => {
    for (const path of ['assets/index-00000000.js', 'nothing.txt', 'robots.txt']) {
      const { status, body } = await ask(`/console/${path}`);
      expect([status, body['detail']], path).toEqual([404, 'Nothing has this path.']);
    }
  });

  it.each([
    '/console/assets/../../../package.json',
    '/console/assets/..%2f..%2f..%2fpackage.json',
    '/console/assets/%2e%2e/%2e%2e/%2e%2e/package.json',
    '/console/assets/..%5c..%5c..%5cpackage.json',
    '/console/assets//etc/passwd',
    '/console/assets/%00',
    '/console/assets/.',
    '/console/..%2fmain.js',
    '/console/../package.json',
  ])('outside its folder is not served: %s', async (path) => {
    const { text } = await ask(path);
    expect(text).not.toMatch(/root:|"name"|import /);
  });
});

describe('every answer under /console', () => {
  it('has the Content-Security-Policy and the headers that keep other sites out', async () => {
    const cookie = await logIn(url);
    const own = { cookie, ...OWN_PAGE };
    const answers: [string, OperatorAnswer][] = [
      ['login', await sendLogin(url)],
      ['wrong token', await sendLogin(url, 'another')],
      ['wrong body', await sendLogin(url, 1)],
      ['another page', await ask('/console/api/locations', { cookie, 'sec-fetch-site': 'cross-site' })],
      ['live', await ask('/console/api/orders/nobody/live', own)],
    ];
    for (const path of ['', '/', '/orders/x', `/${asset}`, '/assets/none.js', '/none.js', '/icon.svg', '/session'])
      answers.push([path, await ask(`/console${path}`, own)]);
    for (const path of [
      '/session',
      '/api/locations',
      '/api/orders/x',
      '/api/none',
      '/api/orders?limit=x',
      '/%zz',
      '/api/orders/%zz',
    ])
      answers.push(
        [path, await ask(`/console${path}`, own)],
        [`${path} without a session`, await ask(`/console${path}`)],
      );
    for (const method of ['POST', 'PUT', 'DELETE']) answers.push([method, await ask('/console/none', own, method)]);

    expect(new Set(answers.map(([, { status }]) => status))).toEqual(new Set([200, 204, 308, 400, 401, 403, 404]));
    for (const [what, { headers }] of answers) {
      expect(Object.fromEntries(headers), what).toMatchObject({
        'content-security-policy': POLICY,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
      });
      expect(headers.get('access-control-allow-origin'), what).toBeNull();
    }
  });
});

describe('the console', () => {
  it('has under 170 kB of compressed files', () => {
    const sent = names.filter((name) => name.endsWith('.br') && !name.startsWith('licences'));
    expect(sent.length).toBeGreaterThan(5);
    const bytes = sent.reduce((sum, name) => sum + readFileSync(`${BUILT}/${name}`).length, 0);
    expect(bytes).toBeLessThan(LIMIT_BYTES);
    // Each file is there in every way in which it may be asked for.
    for (const name of names.filter((each) => /\.(js|css|html|svg|txt)$/.test(each))) {
      expect(names, name).toContain(`${name}.br`);
      expect(names, name).toContain(`${name}.gz`);
    }
  });

  it('includes the licence of each package that it uses', () => {
    const notices = read('licences.txt');
    const named = [...notices.matchAll(/^(\S+ [\d.]+) \(MIT\)$/gm)].map(([, name]) => name);
    expect(named).toEqual(consolePackages().map(({ name, version }) => `${name} ${version}`));
    expect(notices.match(/Permission is hereby granted, free of charge/g)).toHaveLength(named.length);
  });

  it('answers 503 and says how to build the console if it is not built', async () => {
    const app = fastify();
    await app.register((scope) => pageFiles(scope, '/nowhere'), { prefix: '/console' });
    for (const path of ['/console/', '/console/orders/x']) {
      const { statusCode, body, headers } = await app.inject(path);
      expect([statusCode, headers['content-type']]).toEqual([503, 'text/plain; charset=utf-8']);
      expect(body).toContain('npm run build:console');
    }
    expect((await app.inject('/console/assets/x.js')).statusCode).toBe(404);
    await app.close();
  });
});
