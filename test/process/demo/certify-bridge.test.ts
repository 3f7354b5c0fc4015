/** docs/connect-your-pos.md: its sample bridge passes, and its signature is right. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sign } from '../../../src/core/domain/standard-webhooks.ts';
import { freePort } from '../../../world/network/free-port.ts';
import { sharedTmpdir, unprivilegedUser } from '../../../world/postgres/unprivileged-user.ts';
import { until } from '../../../world/processes/until.ts';

const SCRIPT = fileURLToPath(new URL('../../../tools/demo/certify-bridge.ts', import.meta.url));
const BRIDGE = fileURLToPath(new URL('../../../examples/bridge.mjs', import.meta.url));
const page = readFileSync(new URL('../../../docs/connect-your-pos.md', import.meta.url), 'utf8');

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

type Certify = {
  ended: Promise<unknown[]>;
  said: () => string;
  printed: () => { WEBHOOK_URL: string; SECRET: string };
};

/** Starts it where nobody takes orders yet, and goes on with `go`; ends it, whatever happens. */
async function withCertify(
  about: { orders: number; webhooks: number; data: string; words?: readonly string[] },
  go: (certify: Certify) => Promise<void>,
): Promise<void> {
  const { orders, webhooks, data, words = [] } = about;
  const ordersUrl = `http://127.0.0.1:${orders}/orders`;
  const certify = spawn(
    process.execPath,
    [SCRIPT, '--orders-url', ordersUrl, '--port', String(webhooks), '--dir', data, ...words],
    { env: { PATH: process.env['PATH'] } },
  );
  const ended = once(certify, 'close');
  const said = textOf(certify);
  const wordAfter = (label: RegExp): string => label.exec(said())?.[1] ?? '';
  try {
    const endedEarly = ended.then(() => Promise.reject(new Error(`it ended early: ${said()}`)));
    endedEarly.catch(() => {});
    await Promise.race([until(() => said().includes('does not listen there yet'), 300_000), endedEarly]);
    await go({
      ended,
      said,
      printed: () => ({ WEBHOOK_URL: wordAfter(/webhook URL +(\S+)/), SECRET: wordAfter(/secret +(\S+)/) }),
    });
  } finally {
    certify.kill();
    await ended;
  }
}

describe.concurrent('the bridge in the documentation', () => {
  it.each([
    { what: 'a pickup', words: [], ok: 15 },
    { what: 'a delivery', words: ['--delivery'], ok: 16 },
  ])('passes npm run certify with $what', { timeout: 900_000 }, async ({ what, words, ok }) => {
    const [orders, webhooks] = [await freePort(), await freePort()];
    const data = join(dir, what.replace(' ', '-'));
    let first = {};
    await withCertify({ orders, webhooks, data, words }, async ({ ended, said, printed }) => {
      first = printed();
      expect(first).toEqual({ WEBHOOK_URL: expect.stringContaining('exw_'), SECRET: expect.stringMatching(/^whsec_/) });
      const env = { PATH: process.env['PATH'], ...first, PORT: String(orders) };
      const bridge = spawn(process.execPath, [BRIDGE], { env });
      const closed = once(bridge, 'close');
      try {
        expect(await ended, said()).toEqual([0, null]);
      } finally {
        bridge.kill();
        await closed;
      }
      expect(said()).toContain(`\n${ok} ok; the test order`);
    });
    if (words.length > 0) return;
    // Nothing listens any more. The bridge needs no new URL.
    await withCertify({ orders, webhooks, data }, async ({ printed }) => expect(printed()).toEqual(first));
  });
});

it.each([
  [[], '--orders-url is needed'],
  [['--orders-url', '127.0.0.1:3000/orders'], '--orders-url has to begin with http://'],
])('npm run certify with %j exits 2 and says: %s', async (words, said) => {
  const certify = spawn(process.execPath, [SCRIPT, ...words]);
  const text = textOf(certify);
  expect(await once(certify, 'close')).toEqual([2, null]);
  expect(text()).toContain(said);
});

it('the signature in the documentation is right for the values next to it', () => {
  const [, secret = '', id = '', seconds = '', body = '', signature] =
    /`(whsec_[^`]+)`, the id `([^`]+)`, the time `([^`]+)` and the body\s+`([^`]+)`, the signature is `([^`]+)`/.exec(
      page,
    ) ?? [];
  expect(sign([secret], id, seconds, body)).toBe(signature);
});
