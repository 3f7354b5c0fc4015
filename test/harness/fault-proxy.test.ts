import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { resetSocket } from '../../tools/chaos/carry-bytes.ts';
import { cutNext, cutSometimes } from '../../tools/chaos/choose-cuts.ts';
import { startFaultProxy, type FaultProxy } from '../../tools/chaos/fault-proxy.ts';
import { watchCommits, type Commit, type CommitWatch, type CutMoment } from '../../tools/chaos/watch-commits.ts';
import { inTransaction } from '../../src/core/postgres/transactions.ts';
import { createDatabase } from '../../world/postgres/create-database.ts';
import { until } from '../../world/processes/until.ts';

let databaseUrl: string;
/** Past the proxy, to see what is there. */
let direct: pg.Pool;
let proxy: FaultProxy;
let pool: pg.Pool;

beforeAll(async () => {
  databaseUrl = await createDatabase();
  direct = new pg.Pool({ connectionString: databaseUrl });
  await direct.query('CREATE TABLE slips (note text PRIMARY KEY, attachment bytea)');
});
afterAll(() => direct?.end());

beforeEach(async () => {
  proxy = await startFaultProxy({ targetPort: Number(new URL(databaseUrl).port) });
  pool = new pg.Pool({ connectionString: proxy.through(databaseUrl), max: 2, connectionTimeoutMillis: 2000 });
  pool.on('error', () => {});
});
afterEach(async () => {
  await proxy.stop();
  await pool.end();
});

const write = (client: pg.Pool | pg.ClientBase, note: string, attachment?: Buffer): Promise<unknown> =>
  client.query({ name: 'write-note', text: 'INSERT INTO slips VALUES ($1, $2)', values: [note, attachment] });
const isThere = async (note: string): Promise<boolean> =>
  (await direct.query('SELECT FROM slips WHERE note = $1', [note])).rowCount === 1;
const works = (): Promise<boolean> =>
  pool.query('SELECT 1').then(
    () => true,
    () => false,
  );

describe('a fault proxy', () => {
  it('without faults changes neither statements nor answers, also large ones', async () => {
    const attachment = Buffer.alloc(3 * 2 ** 20, 'x');
    await write(pool, 'big', attachment);
    const { rows } = await pool.query<{ attachment: Buffer }>("SELECT attachment FROM slips WHERE note = 'big'");
    expect(rows[0]?.attachment.equals(attachment)).toBe(true);
    expect(proxy.connections).toBe(1);
    expect(proxy.cuts).toEqual([]);
  });

  it('passes on a request for encryption, and the answer that there is none', async () => {
    const client = new pg.Client({ connectionString: proxy.through(databaseUrl), ssl: true });
    await expect(client.connect()).rejects.toThrow('does not support SSL');
  });

  it('delays each direction for the requested time', async () => {
    await works();
    proxy.faults.latencyMs = 60;
    const began = performance.now();
    await pool.query('SELECT 1');
    expect(performance.now() - began).toBeGreaterThanOrEqual(119);
    proxy.faults.latencyMs = undefined;
    const later = performance.now();
    await pool.query('SELECT 1');
    expect(performance.now() - later).toBeLessThan(60);
  });

  it('as a black hole holds all bytes back, and passes them on afterwards', async () => {
    await works();
    proxy.faults.blackhole = true;
    const swallowed = write(pool, 'swallowed');
    const first = await Promise.race([swallowed, sleep(200, 'nothing')]);
    expect(first).toBe('nothing');
    expect(await isThere('swallowed')).toBe(false);
    proxy.faults.blackhole = undefined;
    await swallowed;
    expect(await isThere('swallowed')).toBe(true);
  });

  it('as a black hole hides from Postgres that the client is gone, so that its locks stay', async () => {
    const client = new pg.Client({ connectionString: proxy.through(databaseUrl) });
    client.on('error', () => {});
    await client.connect();
    await client.query('BEGIN; LOCK TABLE slips');
    proxy.faults.blackhole = true;
    (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
    const locks = async (): Promise<number> =>
      (await direct.query("SELECT FROM pg_locks WHERE relation = 'slips'::regclass AND mode = 'AccessExclusiveLock'"))
        .rowCount ?? 0;
    await sleep(200);
    expect(await locks()).toBe(1);
    proxy.faults.blackhole = undefined;
    await until(async () => (await locks()) === 0);
    await until(() => proxy.connections === 0);
  });

  it('refuses new connections, keeps existing ones, and listens again at the same port', async () => {
    const client = await pool.connect();
    const { port } = proxy;
    proxy.refuse();
    await expect(pool.query('SELECT 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await client.query('SELECT 1');
    client.release();
    await Promise.all([proxy.accept(), proxy.accept()]);
    expect(proxy.port).toBe(port);
    const another = new pg.Client(proxy.through(databaseUrl));
    await another.connect();
    await another.end();
  });

  it('waits for its port while another program has it', async () => {
    proxy.refuse();
    const another = createServer().listen(proxy.port, '127.0.0.1');
    await once(another, 'listening');
    const accepted = proxy.accept();
    expect(await Promise.race([accepted, sleep(200, 'not yet')])).toBe('not yet');
    another.close();
    await accepted;
    expect(await works()).toBe(true);
  });

  it('as a black hole holds a limited number of bytes back, and loses none', async () => {
    const received = createHash('sha256');
    let reading: Socket | undefined;
    const target = createServer({ pauseOnConnect: true }, (socket) => {
      reading = socket.on('data', (bytes) => received.update(bytes));
    }).listen(0, '127.0.0.1');
    await once(target, 'listening');
    const narrow = await startFaultProxy({ targetPort: (target.address() as AddressInfo).port });
    narrow.faults.blackhole = true;
    const bytes = randomBytes(64 * 2 ** 20);
    const client = connect(narrow.port, '127.0.0.1').resume();
    client.end(bytes);
    await sleep(200);
    expect(client.writableLength).toBeGreaterThan(0);
    narrow.faults.blackhole = false;
    await sleep(200);
    // No more for one that does not read.
    expect(client.writableLength).toBeGreaterThan(0);
    reading?.resume();
    await once(client, 'close');
    expect(received.digest('hex')).toBe(createHash('sha256').update(bytes).digest('hex'));
    await narrow.stop();
    target.close();
  });

  it('resets a connection even while the client is ending it', async () => {
    const socket = connect(proxy.port, '127.0.0.1');
    await once(socket, 'connect');
    const closed = once(socket, 'close');
    socket.end();
    await new Promise(process.nextTick);
    resetSocket(socket);
    await closed;
  });

  it('resets every connection at once, and the pool of the client recovers', async () => {
    const waiting = [1, 2].map(() => pool.query("SELECT pg_sleep(30), 'reset me'"));
    const outcomes = Promise.allSettled(waiting);
    await until(() => proxy.connections === 2);
    await sleep(50);
    proxy.resetAll();
    for (const outcome of await outcomes) expect(outcome).toMatchObject({ status: 'rejected' });
    await until(works);
    expect(proxy.connections).toBe(1);
  });

  it('resets a connection while Postgres is down', async () => {
    const nowhere = await startFaultProxy({ targetPort: 1 });
    const client = new pg.Client(nowhere.through(databaseUrl));
    await expect(client.connect()).rejects.toThrow();
    await nowhere.stop();
  });

  it('closes every connection when it stops, also one that neither side ends', async () => {
    const silent = connect(proxy.port, '127.0.0.1');
    silent.on('error', () => {});
    await once(silent, 'connect');
    await until(() => proxy.connections === 1);
    proxy.faults.blackhole = true;
    silent.write('GET / HTTP/1.1\r\n\r\n');
    await sleep(20);
    await proxy.stop();
    await proxy.stop();
    expect(proxy.connections).toBe(0);
    await expect(pool.query('SELECT 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });
});

describe('a connection that is cut at a commit', () => {
  it('has committed a single statement, although the client got an error', async () => {
    proxy.faults.cutAfterCommit = cutNext(2, 'answered');
    await expect(write(pool, 'alone')).rejects.toThrow();
    // Once more: now the connection has the statement prepared, or is a new one.
    await expect(write(pool, 'alone again')).rejects.toThrow();
    expect(await isThere('alone')).toBe(true);
    expect(await isThere('alone again')).toBe(true);
    expect(proxy.cuts).toEqual([
      { statement: 'write-note', moment: 'answered' },
      { statement: 'write-note', moment: 'answered' },
    ]);
    await write(pool, 'next');
    expect(await isThere('next')).toBe(true);
  });

  it('has committed a transaction, although the client got an error', async () => {
    proxy.faults.cutAfterCommit = cutNext(1, 'answered');
    await expect(inTransaction(pool, (client) => write(client, 'in a transaction'))).rejects.toThrow();
    expect(await isThere('in a transaction')).toBe(true);
    // Its INSERT was not the commit.
    expect(proxy.cuts).toEqual([{ statement: 'COMMIT', moment: 'answered' }]);
  });

  it.each([
    ['WITH', "WITH n AS (SELECT 'cte' AS note) INSERT INTO slips SELECT note FROM n RETURNING note"],
    ['INSERT', "-- by hand\n INSERT INTO slips VALUES ('plain')"],
    ['DELETE', "DELETE FROM slips WHERE note = 'no such'"],
  ])('is reported with the first word of its statement: %s', async (statement, text) => {
    proxy.faults.cutAfterCommit = cutNext(1, 'answered');
    await expect(pool.query(text)).rejects.toThrow();
    expect(proxy.cuts).toEqual([{ statement, moment: 'answered' }]);
  });

  it('may be cut after the statement was sent, and Postgres still commits', async () => {
    proxy.faults.cutAfterCommit = cutNext(20, 'sent');
    for (let nth = 0; nth < 20; nth += 1) await expect(write(pool, `sent ${nth}`)).rejects.toThrow();
    expect(proxy.cuts).toHaveLength(20);
    expect(proxy.cuts[0]).toEqual({ statement: 'write-note', moment: 'sent' });
    // Postgres reads what came before the reset.
    await until(() => isThere('sent 19'));
  });

  it('may be cut before the statement is sent, and nothing is committed', async () => {
    proxy.faults.cutAfterCommit = cutNext(3, 'unsent');
    await expect(write(pool, 'unsent')).rejects.toThrow();
    await expect(write(pool, 'unsent', Buffer.alloc(2 ** 20))).rejects.toThrow();
    await expect(inTransaction(pool, (client) => write(client, 'unsent'))).rejects.toThrow();
    expect(proxy.cuts.map(({ statement }) => statement)).toEqual(['write-note', 'write-note', 'COMMIT']);
    // Were one of them still to commit, this would be refused.
    await write(pool, 'unsent');
  });

  it('is never one that only reads', async () => {
    proxy.faults.cutAfterCommit = () => 'answered';
    await pool.query('SELECT 1');
    await pool.query({ name: 'read', text: 'SELECT $1::int', values: [1] });
    await pool.query('WITH n AS (SELECT note FROM slips FOR UPDATE) SELECT count(*) FROM n');
    await pool.query('BEGIN; ROLLBACK');
    await pool.query('COMMIT');
    expect(proxy.cuts).toEqual([]);
  });

  it('is never one whose statement fails: its client gets the error of Postgres', async () => {
    await write(pool, 'once');
    proxy.faults.cutAfterCommit = () => 'answered';
    await expect(write(pool, 'once')).rejects.toMatchObject({ code: '23505' });
    const client = await pool.connect();
    await client.query('BEGIN');
    await expect(client.query('SELECT 1 / 0')).rejects.toMatchObject({ code: '22012' });
    expect(await client.query('COMMIT')).toMatchObject({ command: 'ROLLBACK' });
    client.release();
    await expect(pool.query("INSERT INTO slips VALUES ('undone'); SELECT 1 / 0")).rejects.toMatchObject({
      code: '22012',
    });
    await pool.query("INSERT INTO slips VALUES ('open'); BEGIN");
    expect(proxy.cuts).toEqual([]);
  });

  it('is never one that Postgres ended first: its client gets the error of Postgres', async () => {
    proxy.faults.cutAfterCommit = () => 'answered';
    const slow = pool.query("INSERT INTO slips SELECT 'slow' FROM pg_sleep(30)");
    const heard = expect(slow).rejects.toMatchObject({ code: '57P01' });
    const end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'INSERT%pg_sleep(30)'";
    await until(async () => (await direct.query(end)).rowCount === 1);
    await heard;
    expect(proxy.cuts).toEqual([]);
  });

  it("is chosen by the caller's random numbers, so that a seed repeats the choice", () => {
    const chances = (): (() => number) => {
      let at = 0;
      const numbers = [0.1, 0.7, 0.9, 0.2, 0.29, 0.4];
      return () => numbers[at++ % numbers.length] ?? 0;
    };
    const draw = (): (CutMoment | undefined)[] => {
      const choose = cutSometimes(0.3, chances());
      return [1, 2, 3].map(() => choose({ statement: 'COMMIT' }));
    };
    expect(draw()).toEqual(['unsent', undefined, 'sent']);
    expect(draw()).toEqual(draw());
  });

  it('is cut only once', async () => {
    const client = await pool.connect();
    client.on('error', () => {});
    proxy.faults.latencyMs = 60;
    proxy.faults.cutAfterCommit = cutNext(1, 'sent');
    const failed = expect(write(client, 'latest')).rejects.toThrow();
    await sleep(20);
    const sync = Buffer.from('S\0\0\0\x04');
    (client as unknown as { connection: { stream: Socket } }).connection.stream.write(sync);
    await failed;
    await sleep(60);
    client.release(true);
    expect(proxy.cuts).toHaveLength(1);
  });
});

/** With everything a client and a server may say before it comes to the point. */
describe('the traffic through a fault proxy', () => {
  const text = (...strings: string[]): Buffer => Buffer.from(strings.map((string) => `${string}\0`).join(''));
  const untyped = (body: Buffer): Buffer => {
    const length = Buffer.alloc(4);
    length.writeInt32BE(4 + body.length);
    return Buffer.concat([length, body]);
  };
  const message = (type: string, body: Buffer = Buffer.alloc(0)): Buffer =>
    Buffer.concat([Buffer.from(type), untyped(body)]);
  const code = (number: number): Buffer => {
    const body = Buffer.alloc(4);
    body.writeInt32BE(number);
    return body;
  };
  const ready = (status: string): Buffer => message('Z', Buffer.from(status));
  const insert = 'INSERT INTO slips VALUES ($1)';

  /** In turns, the client first. */
  const talk: { sent: Buffer[]; answered: Buffer[] }[] = [
    { sent: [untyped(code(80_877_103))], answered: [Buffer.from('N')] },
    {
      sent: [untyped(Buffer.concat([code(196_608), text('user', 'postgres', '')]))],
      answered: [message('R', code(0)), message('S', text('server_version', '18.4')), ready('I')],
    },
    {
      sent: [message('P', text('read', 'SELECT 1')), message('B', text('', 'read')), message('E'), message('S')],
      answered: [
        message('1'),
        message('2'),
        message('D', Buffer.alloc(300)),
        message('C', text('SELECT 1')),
        ready('I'),
      ],
    },
    { sent: [message('Q', text('BEGIN'))], answered: [message('C', text('BEGIN')), ready('T')] },
    {
      sent: [message('P', text('write', insert)), message('B', text('', 'write')), message('E'), message('S')],
      answered: [message('1'), message('2'), message('C', text('INSERT 0 1')), ready('T')],
    },
    { sent: [message('Q', text('ROLLBACK'))], answered: [message('C', text('ROLLBACK')), ready('I')] },
  ];
  const last = {
    sent: [message('B', Buffer.concat([text('', 'write'), Buffer.alloc(2 ** 17, 'Z')])), message('E'), message('S')],
    answered: [message('2'), message('C', text('INSERT 0 1')), ready('I')],
  };

  const passedBy = (watch: CommitWatch, piece: Buffer): Buffer[] => {
    const answered = watch.answered(piece);
    if (!Array.isArray(answered)) throw new Error(`cut after ${answered.statement}`);
    return answered;
  };
  const inPieces = (bytes: Buffer, size: number): Buffer[] =>
    Array.from({ length: Math.ceil(bytes.length / size) }, (_, nth) => bytes.subarray(nth * size, (nth + 1) * size));

  it.each([1, 2, 3, 7, 1000, 2 ** 20])('has the same commit when it comes in pieces of %d bytes', (size) => {
    const asked: Commit[] = [];
    const watch = watchCommits((commit) => {
      asked.push(commit);
      return 'answered';
    });
    for (const { sent, answered } of talk) {
      for (const piece of inPieces(Buffer.concat(sent), size)) expect(watch.sent(piece)).toBeUndefined();
      const passed = inPieces(Buffer.concat(answered), size).flatMap((piece) => passedBy(watch, piece));
      expect(Buffer.concat(passed).equals(Buffer.concat(answered))).toBe(true);
    }
    expect(asked).toEqual([]);

    for (const piece of inPieces(Buffer.concat(last.sent), size)) expect(watch.sent(piece)).toBeUndefined();
    expect(asked).toEqual([{ statement: 'write' }]);
    const pieces = inPieces(Buffer.concat(last.answered), size);
    const end = pieces.pop() ?? Buffer.alloc(0);
    for (const piece of pieces) expect(Buffer.concat(passedBy(watch, piece))).toHaveLength(0);
    expect(watch.answered(end)).toEqual({ statement: 'write', moment: 'answered' });
  });

  it("is passed on unchanged if it is encrypted, or is not Postgres's protocol", () => {
    const encrypted = watchCommits(() => 'answered');
    encrypted.sent(untyped(code(80_877_103)));
    expect(encrypted.answered(Buffer.from('S'))).toEqual([Buffer.from('S')]);
    // As if by chance it read like this.
    encrypted.sent(Buffer.concat(talk[1]?.sent ?? []));
    encrypted.answered(ready('I'));
    expect(encrypted.sent(message('Q', text(insert)))).toBeUndefined();
    expect(encrypted.answered(ready('I'))).toEqual([ready('I')]);

    const other = watchCommits(() => 'answered');
    expect(other.sent(Buffer.from([0xff, 0xff, 0xff, 0xff, 1, 2, 3]))).toBeUndefined();
    const answer = Buffer.from([1, 0, 0, 0, 0, 1]);
    expect(other.answered(answer)).toEqual([answer]);
  });

  it('is not cut if a client sends a statement before the answer to the previous one', () => {
    const watch = watchCommits(() => 'sent');
    watch.sent(Buffer.concat(talk[1]?.sent ?? []));
    watch.answered(ready('I'));
    // Only the answer to the first will tell that the second commits nothing.
    expect(watch.sent(Buffer.concat([message('Q', text('BEGIN')), message('Q', text(insert))]))).toBeUndefined();
  });

  it('reaches the client up to the last byte that Postgres sent before it hung up', () => {
    const watch = watchCommits(() => 'answered');
    watch.sent(Buffer.concat(talk[1]?.sent ?? []));
    watch.answered(ready('I'));
    watch.sent(message('Q', text(insert)));
    const fatal = message('E', text('SFATAL', 'C57P01'));
    expect(watch.answered(fatal)).toEqual([]);
    expect(watch.rest()).toEqual([fatal]);
  });
});
