import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { migrate } from '../../src/database/migrate.ts';
import { asService } from '../system/as-service.ts';
import { startPostgres } from './start-postgres.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    postgresUrl: string;
  }
}

/**
 * Starts one real Postgres for the whole run. It lacks what matters only in a power cut, and autovacuum, which would
 * visit hundreds of databases that are soon over.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const postgres = await startPostgres({
    inMemory: true,
    settings: { fsync: 'off', full_page_writes: 'off', autovacuum: 'off', max_connections: '300' },
  });
  const client = new pg.Client(postgres.url);
  await client.connect();
  await client.query('CREATE DATABASE expediter_template');
  await client.end();
  const template = databaseUrl(postgres.url, 'expediter_template');
  await migrate(template, { serviceUrl: asService(template) });
  project.provide('postgresUrl', postgres.url);
  return () => postgres.stop();
}

export function databaseUrl(serverUrl: string, database: string): string {
  const url = new URL(serverUrl);
  url.pathname = `/${database}`;
  return url.href;
}
