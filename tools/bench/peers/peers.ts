const LEFT_TO_THE_JOB = 'the raw body and headers; repeats; and to the job: the order, its history, publishing';

/** Other tools that can receive such webhooks. For each: its table, and the work that is not done when it answers. */
export const PEERS = {
  'node-red': {
    is: 'Node-RED',
    figure: 'NodeRed',
    table: 'node_red_webhooks',
    leavesOut: 'the signature; the raw body and headers; repeats; the order, its history, publishing',
  },
  'pg-boss': {
    is: 'pg-boss',
    figure: 'PgBoss',
    table: 'pgboss.job',
    leavesOut: LEFT_TO_THE_JOB,
  },
  'graphile-worker': {
    is: 'graphile-worker',
    figure: 'GraphileWorker',
    table: 'graphile_worker._private_jobs',
    leavesOut: LEFT_TO_THE_JOB,
  },
} as const;
export type Peer = keyof typeof PEERS;

export function isPeer(variant: string): variant is Peer {
  return Object.hasOwn(PEERS, variant);
}
