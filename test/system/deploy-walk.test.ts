import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { databaseUrl } from '../support/template-database.ts';
import { needsTool } from './needs-tool.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
/** Before each block's output, so that it can be told whose it is; what curl prints ends with no line's end. */
const MARK = '=== block';

/** The page's blocks as they stand there. */
function blocks(): string[] {
  const page = readFileSync(`${PROJECT}/docs/try-it.md`, 'utf8');
  return [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block);
}

describe('docs/try-it.md, tried by a new operator with an empty Postgres', () => {
  let code: number | null;
  /** By the order of the blocks. */
  let said: string[];
  let error: string;
  const saidBy = (words: string): string => {
    const nth = blocks().findIndex((block) => block.includes(words));
    return said[nth] ?? '';
  };

  beforeAll(async () => {
    for (const tool of ['bash', 'curl', 'openssl']) needsTool(tool, tool);
    const name = `walk_${randomUUID().replaceAll('-', '')}`;
    const client = new pg.Client(inject('postgresUrl'));
    await client.connect();
    await client.query(`CREATE DATABASE ${name} TEMPLATE template0`);
    await client.end();

    const script = blocks().map((block, nth) => `printf '\\n%s\\n' '${MARK} ${nth}'\n${block}`);
    // One that stops half-way leaves nothing running.
    const shell = spawn('timeout', ['90', 'bash', '-eu'], {
      cwd: PROJECT,
      env: {
        PATH: process.env['PATH'],
        HOME: process.env['HOME'],
        METADATA_SERVER_DETECTION: 'none',
        DATABASE_URL: databaseUrl(inject('postgresUrl'), name),
        PORT: String(await freePort()),
        OUTSIDE_PORT: String(await freePort()),
      },
    });
    shell.stdin.end(`trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n${script.join('\n')}`);
    const ended = once(shell, 'close') as Promise<[number | null]>;
    const [out, err, [exit]] = await Promise.all([text(shell.stdout), text(shell.stderr), ended]);
    said = out.split(new RegExp(`\n${MARK} \\d+\n`)).slice(1);
    error = err;
    code = exit;
  });

  it('every command goes through, up to the end of the service', () => {
    expect({ code, out: code === 0 ? '' : said.join('\n'), error: code === 0 ? '' : error }).toEqual({
      code: 0,
      out: '',
      error: '',
    });
    expect(said).toHaveLength(blocks().length);
  });

  it('the schema is made', () => expect(saidBy('expediter migrate')).toContain('0001-baseline'));
  it('the signal is taken, and the order gets its ticket', () =>
    expect(saidBy('/pubsub/push')).toMatch(/^204\n[^]*ticket-1/));
  it('a webhook with the wrong signature is answered 200 and dropped', () =>
    expect(saidBy('dgst')).toMatch(/"outcome":"dropped"/));
  it('the list tells why', () => expect(saidBy('webhook list')).toMatch(/dropped .*signature/));
  it('after the secret is mended a replay applies it', () => expect(saidBy('--dry-run')).toMatch(/applied[^]*applied/));
  it('and the member sees it', () => {
    expect(saidBy('/v1/orders/order-1')).toMatch(/confirmed[^]*"memberState":"confirmed"/);
  });
});
