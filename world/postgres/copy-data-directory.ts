import { copyFile, mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';

/** What belongs to the running server alone, or comes again by replication. */
const LEFT_OUT = new Set(['postmaster.pid', 'postmaster.opts', 'pg_wal', 'pg_replslot', 'pg_stat_tmp', 'pgsql_tmp']);

/**
 * Copies the data of a running Postgres on this machine by its own rules for a base backup, since its packages have no
 * pg_basebackup. https://www.postgresql.org/docs/current/continuous-archiving.html#BACKUP-LOWLEVEL-BASE-BACKUP
 */
export async function copyDataDirectory(url: string, into: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {}); // the query says it
  await client.connect();
  try {
    await client.query(`SELECT pg_backup_start('standby', fast => true)`);
    const { rows: places } = await client.query<{ directory: string }>(
      `SELECT current_setting('data_directory') AS directory`,
    );
    await copyTree(places[0]?.directory ?? '', into);
    for (const empty of ['pg_wal', 'pg_replslot', 'pg_stat_tmp']) await mkdir(join(into, empty), { mode: 0o700 });
    const { rows } = await client.query<{ labelfile: string }>(
      'SELECT labelfile FROM pg_backup_stop(wait_for_archive => false)',
    );
    await writeFile(join(into, 'backup_label'), rows[0]?.labelfile ?? '');
  } finally {
    await client.end();
  }
}

async function copyTree(from: string, into: string): Promise<void> {
  await mkdir(into, { recursive: true, mode: 0o700 });
  for (const entry of await readdir(from, { withFileTypes: true }).catch(ifGone)) {
    if (LEFT_OUT.has(entry.name)) continue;
    const [source, target] = [join(from, entry.name), join(into, entry.name)];
    if (entry.isDirectory()) await copyTree(source, target);
    else await copyFile(source, target).catch(ifGone);
  }
}

/** What goes while it is being copied is in the log that the copy replays. */
function ifGone(error: NodeJS.ErrnoException): [] {
  if (error.code === 'ENOENT') return [];
  throw error;
}
