import { availableParallelism, cpus, totalmem } from 'node:os';
import pg from 'pg';
import { imageEnvironment } from '../stage/image-environment.ts';

/** Describes the machine, and the Postgres on it, in one line. */
export async function describeMachine(postgresUrl: string): Promise<string> {
  const gib = Math.round(totalmem() / 2 ** 30);
  const { LD_PRELOAD } = imageEnvironment();
  const model = cpus()[0]?.model.trim() ?? 'unknown processor';
  return (
    `${availableParallelism()} cores (${model}), ${gib} GiB, ${process.platform}, Node ${process.versions.node}, ` +
    `Postgres ${await versionOf(postgresUrl)}, fsync and synchronous_commit on, ` +
    (LD_PRELOAD ?? "not the image's allocator")
  );
}

async function versionOf(url: string): Promise<string> {
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query<{ server_version: string }>('SHOW server_version');
  await client.end();
  return rows[0]?.server_version ?? 'unknown';
}
