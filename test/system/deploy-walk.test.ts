/** The service with an empty Postgres: the blocks of three pages, run in one shell as a new operator would. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { freePort } from '../../world/network/free-port.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { sendJson, serveHttp, type HttpServer } from '../../world/network/serve-http.ts';
import { databaseUrl } from '../../world/postgres/template-database.ts';
import { queryOnce } from '../support/query-once.ts';
import { read, ROOT } from '../support/read-project.ts';
import { needsTool } from './needs-tool.ts';

/** Before each block's output, to find it. The output of curl does not end with a newline. */
const MARK = '=== block';

/** The code in a language on a page, below a heading. */
function code(page: string, heading: string, language: string): string[] {
  const [, section = ''] = read(`docs/${page}`).split(`# ${heading}\n`);
  const [own = ''] = section.split(/^## /m);
  return [...own.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'))].map(([, block = '']) => block);
}

const ofPage = code('your-first-order.md', '5. Run the service itself', 'sh');
const signal = ofPage.findIndex((block) => block.includes('signal-token issue'));
const [replay = ''] = code('replay.md', 'Replay', 'sh');

const START_BRIDGE = 'WEBHOOK_URL=$WEBHOOK_URL SECRET=$SECRET PORT=$POS_PORT node examples/bridge.mjs >&2 &\n';
/** The POS cancels the order, and signs with a secret that its location does not have yet. */
const OTHER_SECRET = String.raw`
other=$(openssl rand -base64 32)
id=msg_1 at=$(date +%s)
body='{"eventType": "order.status", "order": {"thirdPartyReference": "4711", "status": "CANCELLED"}}'
key=$(printf %s "$other" | openssl base64 -d -A | od -An -v -tx1 | tr -d ' \n')
signature=$(printf '%s.%s.%s' "$id" "$at" "$body" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)
curl -sS "$WEBHOOK_URL" -H 'content-type: application/json' -d "$body" \
  -H "webhook-id: $id" -H "webhook-timestamp: $at" -H "webhook-signature: v1,$signature"
`;
const REPLAY = String.raw`
echo "{\"ordersUrl\": \"http://127.0.0.1:$POS_PORT/orders\", \"secret\": \"whsec_$other\"}" >"$FOLDER/settings.json"
{
${replay}
} <"$FOLDER/settings.json"
`;
const SHOW = 'curl -sS "$PUBLIC_URL/v1/orders/4711" -H "Authorization: Bearer $OPERATOR_TOKEN"\n';
const blocks = [
  ...ofPage.slice(0, signal),
  START_BRIDGE,
  ...ofPage.slice(signal, -1),
  OTHER_SECRET,
  REPLAY,
  SHOW,
  ...ofPage.slice(-1),
];

describe('the documented commands on an empty Postgres', () => {
  let folder: string;
  let platform: HttpServer;
  let exit: number | null;
  /** By the order of the blocks. */
  let said: string[];
  let error: string;
  const saidBy = (words: string): string => said[blocks.findIndex((block) => block.includes(words))] ?? '';

  beforeAll(async () => {
    for (const tool of ['bash', 'curl', 'openssl']) needsTool(tool, tool);
    folder = mkdtempSync(join(tmpdir(), 'deploy-walk-'));
    const order = sampleOrder({ serviceOrderId: '4711', locationId: 'club-1' });
    platform = await serveHttp((request, response) => {
      request.resume();
      sendJson(response, 200, { data: { order } });
    });
    const name = `walk_${randomUUID().replaceAll('-', '')}`;
    await queryOnce(inject('postgresUrl'), `CREATE DATABASE ${name} TEMPLATE template0`);

    const script = blocks.map((block, nth) => `printf '\\n%s\\n' '${MARK} ${nth}'\n${block}`);
    // One that stops half-way leaves nothing running.
    const shell = spawn('timeout', ['300', 'bash', '-eu'], {
      cwd: ROOT,
      env: {
        PATH: process.env['PATH'],
        HOME: process.env['HOME'],
        METADATA_SERVER_DETECTION: 'none',
        DATABASE_URL: databaseUrl(inject('postgresUrl'), name),
        ORDER_API_URL: `${platform.url}/graphql`,
        FOLDER: folder,
        PORT: String(await freePort()),
        STATUS_PORT: String(await freePort()),
        POS_PORT: String(await freePort()),
      },
    });
    shell.stdin.end(`trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n${script.join('\n')}`);
    const ended = once(shell, 'close') as Promise<[number | null]>;
    const [out, err, [code]] = await Promise.all([text(shell.stdout), text(shell.stderr), ended]);
    said = out.split(new RegExp(`\n${MARK} \\d+\n`)).slice(1);
    error = err;
    exit = code;
  });
  afterAll(async () => {
    await platform.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it('all succeed', () => {
    expect({ exit, out: exit === 0 ? '' : said.join('\n'), error: exit === 0 ? '' : error }).toEqual({
      exit: 0,
      out: '',
      error: '',
    });
    expect(said).toHaveLength(blocks.length);
  });

  it('create the schema', () => expect(saidBy('expediter migrate')).toContain('0001-baseline'));
  it('send a signal that is accepted, and show the order as confirmed by the kitchen', () =>
    expect(saidBy('signal-token issue')).toMatch(/^204\n[^]*confirmed/));
  it('send a webhook with a wrong signature, which is dropped', () =>
    expect(saidBy('dgst')).toMatch(/"outcome":"dropped"/));
  it('list the reason of the dropped webhook', () => expect(saidBy('webhook list')).toMatch(/dropped .*signature/));
  it('correct the secret, and apply the dropped webhook by a replay', () =>
    expect(saidBy('--dry-run')).toMatch(/applied[^]*applied/));
  it('show the order as cancelled after the replay', () => {
    expect(saidBy('/v1/orders/4711')).toMatch(/"memberState":"cancelled"/);
  });
});
