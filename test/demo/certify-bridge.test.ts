/** docs/connect-your-pos.md: what stands there passes, as it stands there. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sign } from '../../src/providers/standard/sign.ts';
import { freePort } from '../support/free-port.ts';
import { sharedTmpdir, unprivilegedUser } from '../support/unprivileged-user.ts';
import { until } from '../support/until.ts';

const SCRIPT = fileURLToPath(new URL('../../demo/certify-bridge.ts', import.meta.url));
const page = readFileSync(new URL('../../docs/connect-your-pos.md', import.meta.url), 'utf8');
const codeOf = (language: string): string =>
  new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'ms').exec(page)?.[1] ?? '';

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(sharedTmpdir(unprivilegedUser()), 'expediter-bridge-'));
  chmodSync(dir, 0o755);
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** @returns what it has written so far */
function textOf(child: ChildProcess): () => string {
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (part: Buffer) => (text += part.toString()));
  return () => text;
}

describe('the bridge of the page', () => {
  it.each([[[]], [['--delivery']]])(
    'passes npm run certify, which waits for it %j',
    { timeout: 90_000 },
    async (words) => {
      const [orders, webhooks] = [await freePort(), await freePort()];
      const ordersUrl = `http://127.0.0.1:${orders}/orders`;
      const { PATH } = process.env;
      const certify = spawn(
        process.execPath,
        [SCRIPT, '--orders-url', ordersUrl, '--port', String(webhooks), '--dir', join(dir, 'data'), ...words],
        { env: { PATH } },
      );
      const ended = once(certify, 'close');
      const said = textOf(certify);
      const file = join(dir, 'bridge.mjs');
      writeFileSync(file, codeOf('js'));
      let bridge: ChildProcess | undefined;
      try {
        await until(() => said().includes('Nobody listens there yet'), 30_000);
        const WEBHOOK_URL = /webhook URL +(\S+)/.exec(said())?.[1];
        const SECRET = /secret +(\S+)/.exec(said())?.[1];
        bridge = spawn(process.execPath, [file], { env: { PATH, WEBHOOK_URL, SECRET, PORT: String(orders) } });
        expect(await ended, said()).toEqual([0, null]);
        expect(said()).toMatch(words.length === 0 ? /\n13 ok; the test order/ : /\n14 ok; the test order/);
      } finally {
        bridge?.kill();
        certify.kill();
        await ended;
      }
    },
  );

  it('keeps its secret and its token from one run to the next', () => {
    for (const name of ['secret', 'token'])
      expect(readFileSync(join(dir, 'data', name), 'utf8')).toMatch(/^(whsec|exw)_/);
  });
});

it('signs as the page says, with the values of the page', () => {
  const [, secret = '', id = '', seconds = '', body = '', signature] =
    /`(whsec_[^`]+)`, the id `([^`]+)`, the time `([^`]+)` and the body\s+`([^`]+)` it is `([^`]+)`/.exec(page) ?? [];
  expect(sign([secret], id, seconds, body)).toBe(signature);
});
