import { hash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import RED from 'node-red';
import type { Sender } from '../stage/prepare-bench-database.ts';
import { openPeerPool } from './open-peer-pool.ts';
import { PEERS } from './peers.ts';

const { table } = PEERS['node-red'];

/** The code of the function node. The body is already parsed. The statement is prepared once per connection. */
const KEEP = `
const { hash, locations, pool } = global.get('door');
const { locationId } = msg.req.params;
if (locations.get(hash('sha256', msg.req.query.token)) !== locationId) {
  msg.statusCode = 401;
  return msg;
}
const { thirdPartyReference, id, status, occurredAt } = msg.payload.order;
await pool.query({
  name: 'keep',
  text: 'INSERT INTO ${table} VALUES ($1, $2, $3, $4, $5, $6)',
  values: [msg.req.headers['webhook-id'], locationId, thirdPartyReference, id, status, occurredAt],
});
msg.payload = { outcome: 'applied' };
return msg;
`;

const FLOW = [
  { id: 'flow', type: 'tab' },
  { id: 'in', type: 'http in', z: 'flow', method: 'post', url: '/webhook/standard/:locationId', wires: [['keep']] },
  { id: 'keep', type: 'function', z: 'flow', outputs: 1, func: KEEP, wires: [['out']] },
  { id: 'out', type: 'http response', z: 'flow', wires: [] },
];

/** Runs Node-RED with one flow, without its editor, its log, and the ETags of Express. */
export async function serveNodeRed(databaseUrl: string, senders: readonly Sender[]): Promise<Server> {
  const pool = openPeerPool(databaseUrl);
  await pool.query(
    `CREATE TABLE ${table} (webhook_id text, location_id text, service_order_id text, provider_order_id text,
                            status text, occurred_at timestamptz)`,
  );
  const locations = new Map(senders.map(({ locationId, token }) => [hash('sha256', token), locationId]));
  const userDir = mkdtempSync(join(tmpdir(), 'expediter-node-red-'));
  process.once('exit', () => rmSync(userDir, { recursive: true, force: true }));
  writeFileSync(join(userDir, 'flows.json'), JSON.stringify(FLOW));
  RED.init({
    userDir,
    flowFile: 'flows.json',
    credentialSecret: false,
    httpAdminRoot: false,
    httpNodeRoot: '/',
    httpServerOptions: { etag: false, 'x-powered-by': false },
    functionGlobalContext: { door: { hash, locations, pool } },
    logging: { console: { level: 'off', metrics: false, audit: false } },
    telemetry: { enabled: false },
  });
  await RED.start();
  return createServer(RED.httpNode);
}
