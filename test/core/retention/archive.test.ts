import { createServer, type IncomingMessage, type Server } from 'node:http';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import { CRC32C } from '@google-cloud/storage';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { showOrder } from '../../../src/core/orders/show-order.ts';
import { archiveMonth, findArchived, type ArchiveStore } from '../../../src/core/retention/archive.ts';
import { archiveStore } from '../../../src/core/retention/archive-store.ts';
import { movePastOrders } from '../../../src/core/retention/past-orders.ts';
import { dropOldPartitions } from '../../../src/core/retention/retention-rules.ts';
import { asService } from '../../../world/system/as-service.ts';
import { createDatabase } from '../../../world/postgres/create-database.ts';
import { openDatabase } from '../../../src/database/open-database.ts';

const PII_DAYS = 30;
const PART = 5;
const NAME = 'past_orders/month=2025-03';

let owner: pg.Pool;
let pool: pg.Pool;
let end: () => Promise<void>;
let folder: string;
let store: ArchiveStore;

beforeAll(async () => {
  const url = await createDatabase();
  const opened = openDatabase(asService(url), 8, () => {});
  pool = opened.pool;
  owner = new pg.Pool({ connectionString: url, max: 2 });
  end = async () => {
    await Promise.all([owner, opened.pool, opened.flushPool].map((each) => each.end()));
  };
});
afterAll(() => end());
beforeEach(async () => {
  await owner.query('TRUNCATE placements, orders, status_events, tombstones CASCADE');
  await owner.query('DROP TABLE IF EXISTS past_orders_202503; TRUNCATE past_orders');
  folder = await mkdtemp(join(tmpdir(), 'archive-'));
  store = archiveStore(pathToFileURL(folder).href);
});
afterEach(() => rm(folder, { recursive: true }));

/** Orders that were moved to the past in March 2025. */
async function seedPast(count: number): Promise<string[]> {
  const { rows } = await owner.query<{ id: string }>(
    `WITH p AS (
       INSERT INTO placements (service_order_id, location_id, state, deadline_at, signalled_at, finished_at)
       SELECT 'order-' || lpad(n::text, 6, '0'), 'club-1', 'sent', now(), now() - interval '40 days', now() - interval '40 days'
       FROM generate_series(1, $1::int) AS n
       RETURNING service_order_id
     ), e AS (
       INSERT INTO status_events (service_order_id, status, native_status, outcome, sequence)
       SELECT service_order_id, 'completed', E'two\nlines "quoted"', 'applied', 2 FROM p
     ), o AS (
       INSERT INTO orders (service_order_id, call_out_code, location_id, fulfillment, rank, sequence, ended_at, erased_at)
       SELECT service_order_id, 'K472', 'club-1', 'pickup', 60, 2, now() - interval '40 days', now() - interval '9 days' FROM p
     )
     SELECT service_order_id AS id FROM p ORDER BY 1`,
    [count],
  );
  await movePastOrders(pool, PII_DAYS);
  await pool.query(`SELECT ensure_past_orders_partition('2025-03-01')`);
  await owner.query(`UPDATE past_orders SET month = '2025-03-01'`);
  return rows.map(({ id }) => id);
}

const dropArchived = (into: ArchiveStore): Promise<string[]> =>
  dropOldPartitions(pool, 'past_orders', 300, {
    archive: () => archiveMonth(pool, into, '2025-03', { perPart: PART }),
  });

const inTable = async (): Promise<number> =>
  (await owner.query<{ count: number }>('SELECT count(*)::int FROM past_orders')).rows[0]?.count ?? 0;

/** The ids of all lines of the archive. */
async function archivedIds(): Promise<string[]> {
  const ids: string[] = [];
  for (const file of (await readdir(join(folder, NAME))).toSorted()) {
    if (!file.endsWith('.ndjson.gz')) continue;
    const text = gunzipSync(await readFile(join(folder, NAME, file))).toString();
    ids.push(
      ...text
        .trimEnd()
        .split('\n')
        .map((line) => (JSON.parse(line) as { service_order_id: string }).service_order_id),
    );
  }
  return ids;
}

describe('a month of past orders', () => {
  it('is in the archive, with one line of JSON for each order, before it is dropped', async () => {
    const ids = await seedPast(PART + 3);
    expect(await dropArchived(store)).toEqual(['past_orders_202503']);
    expect(await archivedIds()).toEqual(ids);
    const manifest = JSON.parse(await readFile(join(folder, NAME, 'manifest.json'), 'utf8')) as object;
    expect(manifest).toMatchObject({
      format: 1,
      month: '2025-03',
      orders: PART + 3,
      schema: expect.stringMatching(/^\d{4}-/),
      parts: [
        { orders: PART, first: ids[0], last: ids[PART - 1] },
        { orders: 3, last: ids.at(-1) },
      ],
    });
    const part = gunzipSync(await readFile(join(folder, NAME, 'part-000001.ndjson.gz'))).toString();
    expect(JSON.parse(part.split('\n', 1)[0] ?? '')).toMatchObject({
      service_order_id: ids[PART],
      location_id: 'club-1',
      state: 'sent',
      status: 'completed',
      orders: [{ call_out_code: 'K472', rank: 60 }],
      status_events: [{ native_status: 'two\nlines "quoted"' }],
    });
  });

  it('stays in the table if the archive cannot be written, and the next try neither loses nor doubles an order', async () => {
    const ids = await seedPast(PART + 3);
    // The manifest is looked for, two parts and the manifest are written, and the parts are read.
    for (let stop = 0; stop < 6; stop += 1) {
      let left = stop;
      const stopNow = (): void => {
        if (left === 0) throw new Error('the disk is gone');
        left -= 1;
      };
      const failing: ArchiveStore = {
        ...store,
        write: async (name, bytes) => {
          stopNow();
          return store.write(name, bytes);
        },
        read: async (name) => {
          stopNow();
          return store.read(name);
        },
      };
      await expect(dropArchived(failing), `${stop}`).rejects.toThrow('the disk is gone');
      expect(await inTable()).toBe(ids.length);
      // The next round goes on from what is there.
      expect(await archiveMonth(pool, store, '2025-03', { perPart: PART })).toBe(true);
      expect(await archivedIds()).toEqual(ids);
      if (stop < 5) await rm(join(folder, 'past_orders'), { recursive: true });
    }
    expect(await dropArchived(store)).toEqual(['past_orders_202503']);
    expect(await archivedIds()).toEqual(ids);
    expect((await owner.query('SELECT FROM find_tombstone($1)', [ids[0]])).rowCount).toBe(1);
  });

  it.each([1, 2, 3])(
    'is archived and dropped even if an order left its table after %i files were written',
    async (files) => {
      const ids = await seedPast(PART + 3);
      let left = files;
      const failing: ArchiveStore = {
        ...store,
        write: async (name, bytes) => {
          if (left === 0) throw new Error('the disk is gone');
          left -= 1;
          return store.write(name, bytes);
        },
      };
      await archiveMonth(pool, failing, '2025-03', { perPart: PART }).catch(() => {});
      // It was never read, and is signalled again.
      await owner.query('DELETE FROM past_orders WHERE service_order_id = $1', [ids[0]]);
      expect(await dropArchived(store)).toEqual(['past_orders_202503']);
      expect(await archivedIds()).toEqual(ids);
    },
  );

  it('is archived even if the process before used another version of zlib', async () => {
    const ids = await seedPast(PART + 3);
    expect(await archiveMonth(pool, store, '2025-03', { perPart: PART })).toBe(true);
    await rm(join(folder, NAME, 'manifest.json'));
    const part = join(folder, NAME, 'part-000000.ndjson.gz');
    await writeFile(part, gzipSync(gunzipSync(await readFile(part)), { level: 1 }));
    expect(await dropArchived(store)).toEqual(['past_orders_202503']);
    expect(await archivedIds()).toEqual(ids);
  });

  it.each([
    ['no archive', 'of another'],
    ['an archive', gzipSync('{"service_order_id":"order-x"}\n')],
  ])('is not archived over a file of another installation that is %s', async (_what, another) => {
    await seedPast(2);
    await mkdir(join(folder, NAME), { recursive: true });
    const name = join(folder, NAME, 'part-000000.ndjson.gz');
    await writeFile(name, another);
    await expect(dropArchived(store)).rejects.toThrow('does another installation use this archive?');
    expect(await readFile(name)).toEqual(Buffer.from(another));
    expect(await readdir(join(folder, NAME))).toEqual(['part-000000.ndjson.gz']);
    expect(await inTable()).toBe(2);
  });

  it('is not dropped if its table was detached, because the archive would have none of its orders', async () => {
    await seedPast(2);
    await owner.query('ALTER TABLE past_orders DETACH PARTITION past_orders_202503');
    await expect(dropArchived(store)).rejects.toThrow('is detached from past_orders');
    expect((await owner.query('SELECT FROM past_orders_202503')).rowCount).toBe(2);
  });

  it.each([
    ['is not as it was written', async () => writeFile(join(folder, NAME, 'part-000000.ndjson.gz'), 'other')],
    [
      'has other orders than this database',
      async () => {
        const name = join(folder, NAME, 'manifest.json');
        await writeFile(name, (await readFile(name, 'utf8')).replace('"orders": 2', '"orders": 3'));
      },
    ],
    [
      'has other orders than this database',
      async () => {
        await owner.query(
          `UPDATE past_orders SET service_order_id = 'order-000001b' WHERE service_order_id = 'order-000002'`,
        );
      },
    ],
  ])('stays in the table if the archive %s', async (problem, change) => {
    await seedPast(2);
    expect(await archiveMonth(pool, store, '2025-03', { perPart: PART })).toBe(true);
    await change();
    await expect(dropArchived(store)).rejects.toThrow(problem);
    expect(await inTable()).toBe(2);
  });

  it('stays in the table if an order cannot be unpacked', async () => {
    await seedPast(2);
    await owner.query(`UPDATE past_orders SET packed = 'x' WHERE service_order_id = 'order-000002'`);
    await expect(dropArchived(store)).rejects.toThrow('Unknown frame descriptor');
    expect(await inTable()).toBe(2);
  });

  it('is archived by one process at a time', async () => {
    await seedPast(2);
    const { promise: goes, resolve: go } = Promise.withResolvers<void>();
    const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
    const slow: ArchiveStore = {
      ...store,
      write: async (name, bytes) => {
        begin();
        await goes;
        return store.write(name, bytes);
      },
    };
    const first = archiveMonth(pool, slow, '2025-03');
    await begun;
    try {
      expect(await archiveMonth(pool, store, '2025-03', { perPart: PART })).toBe(false);
    } finally {
      go();
    }
    expect(await first).toBe(true);
  });
});

describe('an archived order', () => {
  it('is shown as before, with the file that it comes from', async () => {
    const ids = await seedPast(3);
    const before = await showOrder(pool, 'order-000002');
    await dropArchived(store);
    for (const id of ids) expect(await showOrder(pool, id, store), id).toMatchObject({ serviceOrderId: id });
    expect(await showOrder(pool, 'order-000002', store)).toEqual({
      ...before,
      archive: `${pathToFileURL(folder).href}/${NAME}/part-000000.ndjson.gz`,
    });
    expect(await showOrder(pool, 'order-000002')).toBeUndefined();
    expect(await findArchived(store, '2025-03', 'order-000002b')).toBeUndefined();
    expect(await findArchived(store, '2025-03', 'z')).toBeUndefined();
    expect(await findArchived(store, '2025-04', 'order-000002')).toBeUndefined();
  });
});

describe('an archive in a bucket', () => {
  const objects = new Map<string, Buffer>();
  const crc32c = (bytes: Buffer | string): string => {
    const sum = new CRC32C();
    sum.update(Buffer.from(bytes));
    return sum.toString();
  };
  let server: Server;
  beforeAll(async () => {
    server = createServer((request, response) => {
      void answer(request).then(([status, body]) =>
        response.writeHead(status, { 'x-goog-hash': `crc32c=${crc32c(body)}` }).end(body),
      );
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    vi.stubEnv('STORAGE_EMULATOR_HOST', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });
  afterAll(() => {
    vi.unstubAllEnvs();
    server.closeAllConnections();
    server.close();
  });

  /**
   * As Google Cloud Storage answers a multipart upload and a download.
   * @see https://cloud.google.com/storage/docs/uploading-objects#uploading-an-object
   */
  async function answer(request: IncomingMessage): Promise<[number, Buffer | string]> {
    const url = new URL(request.url ?? '', 'http://bucket');
    const body = await buffer(request);
    if (request.method === 'POST') {
      const boundary = /boundary="?([^"]+)/.exec(request.headers['content-type'] ?? '')?.[1] ?? '';
      const content = body.toString('latin1').split(`--${boundary}`)[2] ?? '';
      const name = url.searchParams.get('name') ?? '';
      if (objects.has(name) && url.searchParams.get('ifGenerationMatch') === '0')
        return [412, '{"error":{"code":412}}'];
      const bytes = Buffer.from(content.slice(content.indexOf('\r\n\r\n') + 4, -2), 'latin1');
      objects.set(name, bytes);
      return [200, JSON.stringify({ name, bucket: 'archive', size: String(bytes.length), crc32c: crc32c(bytes) })];
    }
    const found = objects.get(decodeURIComponent(url.pathname.split('/o/')[1] ?? ''));
    return found === undefined ? [404, '{"error":{"code":404,"message":"No such object"}}'] : [200, found];
  }

  it('has the same files as an archive in a folder, below the path of its URL', async () => {
    const ids = await seedPast(3);
    const bucket = archiveStore('gs://archive/chain/');
    expect(await dropArchived(bucket)).toEqual(['past_orders_202503']);
    expect([...objects.keys()].toSorted()).toEqual([
      `chain/${NAME}/manifest.json`,
      `chain/${NAME}/part-000000.ndjson.gz`,
    ]);
    expect(await bucket.write('new', Buffer.from('a'))).toBe(true);
    expect(await bucket.write('new', Buffer.from('a'))).toBe(true);
    expect(await bucket.write('new', Buffer.from('b'))).toBe(false);
    expect(await bucket.read('new')).toEqual(Buffer.from('a'));
    expect(await showOrder(pool, String(ids[1]), bucket)).toMatchObject({
      serviceOrderId: ids[1],
      archive: `gs://archive/chain/${NAME}/part-000000.ndjson.gz`,
    });
  });
});
