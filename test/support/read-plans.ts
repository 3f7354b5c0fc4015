import type { Pool, QueryConfig } from 'pg';

type Plan = { 'Node Type': string; 'Relation Name'?: string; Plans?: Plan[]; [measure: string]: unknown };

/** How Postgres executed the queries of `work`. */
export type ReadPlans = {
  /** The relations that were scanned completely. */
  whole: string[];
  /** The number of rows that were read. */
  reads: number;
  /** How many rows each scan gave. */
  scans: { relation: string; rows: number }[];
  /** The number of pages that were looked at, which grows with dead rows, too. */
  pages: number;
};

/** Runs the work on a pool that records its queries, and then has Postgres explain them. */
export async function readPlans(pool: Pool, work: (recording: Pool) => Promise<unknown>): Promise<ReadPlans> {
  const asked: { text: string; values: unknown[] }[] = [];
  const recording = new Proxy(pool, {
    get: (target, name) =>
      name === 'query'
        ? (query: string | QueryConfig, values: unknown[] = []) => {
            asked.push(
              typeof query === 'string' ? { text: query, values } : { text: query.text, values: query.values ?? [] },
            );
            return target.query(query as string, values.length === 0 ? undefined : values);
          }
        : (Reflect.get(target, name) as unknown),
  });
  await work(recording);
  const scans: Plan[] = [];
  let pages = 0;
  for (const { text, values } of asked) {
    const { rows } = await pool.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
      `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`,
      values,
    );
    const plan = rows[0]?.['QUERY PLAN'][0]?.Plan;
    pages += Number(plan?.['Shared Hit Blocks']) + Number(plan?.['Shared Read Blocks']);
    scans.push(...nodesOf(plan).filter((plan) => plan['Relation Name'] !== undefined));
  }
  const looked = ['Actual Rows', 'Rows Removed by Filter', 'Rows Removed by Index Recheck'];
  return {
    whole: scans.filter((scan) => scan['Node Type'] === 'Seq Scan').map((scan) => scan['Relation Name'] ?? ''),
    scans: scans.map((scan) => ({
      relation: scan['Relation Name'] ?? '',
      rows: Number(scan['Actual Rows']) * Number(scan['Actual Loops']),
    })),
    reads: scans
      .map((scan) => Number(scan['Actual Loops']) * looked.reduce((sum, name) => sum + Number(scan[name] ?? 0), 0))
      .reduce((sum, reads) => sum + reads, 0),
    pages,
  };
}

/**
 * Has Postgres run a prepared statement with the plan that it has cached, and undo it. The pool has one connection.
 * @returns the number of rows that all steps of the plan gave or compared
 */
export async function workOf(pool: Pool, statement: string, parameters: string): Promise<number> {
  const explained = await pool.query(
    `BEGIN; EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE "${statement}" ${parameters}; ROLLBACK`,
  );
  const [, { rows }] = explained as unknown as { rows: { 'QUERY PLAN': { Plan: Plan }[] }[] }[] as [unknown, never];
  const steps = nodesOf((rows as { 'QUERY PLAN': { Plan: Plan }[] }[])[0]?.['QUERY PLAN'][0]?.Plan);
  const looked = [
    'Actual Rows',
    'Rows Removed by Filter',
    'Rows Removed by Join Filter',
    'Rows Removed by Index Recheck',
  ];
  const works = steps.map(
    (step) => Number(step['Actual Loops']) * looked.reduce((sum, name) => sum + Number(step[name] ?? 0), 0),
  );
  return works.reduce((sum, work) => sum + work, 0);
}

function nodesOf(plan: Plan | undefined): Plan[] {
  return plan === undefined ? [] : [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}
