import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import pg, { type ClientBase } from 'pg';
import { SCHEMA, TABLE } from './check-schema.ts';

/** Columns of an audit row that the service may set. Postgres sets the id and the times. */
const ACT =
  'actor_kind actor_id actor_name source request_id action location_id service_order_id webhook_id subject before';
const insert = (columns: string): string[] => columns.split(' ').map((column) => `INSERT (${column})`);

/** The rights of the service's role, which owns no table. Tests compare this list with the schema and the code. */
export const RIGHTS = {
  applications: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  attention_items: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  audit: ['SELECT', ...insert(ACT)],
  audit_outcomes: ['SELECT', ...insert('audit_id outcome after')],
  call_outs: ['SELECT', 'INSERT', 'UPDATE'],
  cancellations: ['SELECT', 'INSERT', 'UPDATE'],
  cases: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  connect_links: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  credentials: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  dropped_bytes: ['SELECT', 'INSERT', 'UPDATE'],
  estimates_due: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  followed_orders: ['SELECT', 'INSERT', 'DELETE'],
  following_processes: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  former_settings: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  kept_days: [],
  kitchens: ['SELECT', 'INSERT', 'UPDATE'],
  live_messages: ['SELECT', 'INSERT', 'DELETE'],
  location_last_seen: ['SELECT', 'INSERT', 'UPDATE'],
  location_polls: ['SELECT', 'INSERT', 'UPDATE'],
  locations: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  notes: ['SELECT', 'INSERT', 'DELETE'],
  notice_messages: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  notices: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  operator_grants: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  operator_sessions: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  operator_tokens: ['SELECT', 'INSERT', 'UPDATE'],
  order_changes: ['SELECT', 'INSERT', 'UPDATE (applied)', 'DELETE'],
  order_contents: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  orders: ['SELECT', 'INSERT', 'UPDATE'],
  outbox: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  parked_events: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  parked_sweep: ['SELECT', 'UPDATE'],
  past_orders: ['SELECT', 'INSERT'],
  placement_attempts: ['SELECT', 'INSERT', 'UPDATE'],
  placements: ['SELECT', 'INSERT', 'UPDATE'],
  provider_orders: ['SELECT', 'INSERT'],
  refreshes: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  refused_bytes: ['SELECT', 'INSERT', 'UPDATE'],
  removed_kitchens: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  removed_tokens: ['SELECT', 'INSERT', 'DELETE'],
  schema_migrations: ['SELECT'],
  scorecard_hours: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  scorecard_scored: ['SELECT', 'UPDATE'],
  sequence_floor: ['SELECT', 'INSERT', 'UPDATE'],
  signal_tokens: ['SELECT', 'INSERT', 'UPDATE'],
  status_endpoints: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  // Rows are only added, but UPDATE is needed to erase free texts.
  status_events: ['SELECT', 'INSERT', 'UPDATE (reason)', 'UPDATE (item_ids)'],
  tombstone_locations: ['SELECT'],
  // Only the owner's functions use it.
  tombstones: [],
  traffic: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  webhook_tokens: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  webhooks: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
} as const satisfies Record<string, readonly string[]>;

/** The owner's functions that the service calls. */
export const FUNCTIONS = [
  'ensure_webhook_partition(date)',
  'drop_webhook_partition(date)',
  'delete_old_audit(integer)',
  'ensure_past_orders_partition(date)',
  'drop_past_orders_partition(date)',
  'find_tombstone(text)',
  'take_past_orders(integer,text[])',
  'forget_past_order(text,uuid)',
  'forget_target()',
  'keep_doubt()',
] as const;

const INSUFFICIENT_PRIVILEGE = '42501';

/**
 * Grants the service's rights to the role in `serviceUrl`. If the role does not exist, it is created with the URL's
 * password. On tables with rights per column, rights that an earlier version granted on the whole table are revoked.
 * @param owner a connection of the role that owns the tables
 * @throws Error that says what to do if it may not create the role
 */
export async function grantRights(owner: ClientBase, serviceUrl: string): Promise<void> {
  const { user = '', password } = new pg.Client({ connectionString: serviceUrl });
  const role = pg.escapeIdentifier(user);
  const { rows } = await owner.query<{ same: boolean; there: boolean }>(
    'SELECT current_user = $1 AS same, EXISTS (SELECT FROM pg_roles WHERE rolname = $1) AS there',
    [user],
  );
  const { same, there } = rows[0] ?? {};
  if (same === true) return;
  if (there !== true) await makeRole(owner, role, password ?? '');
  await owner.query(
    [
      `GRANT USAGE ON SCHEMA ${SCHEMA} TO ${role}`,
      ...Object.entries(RIGHTS).flatMap(([table, rights]) => [
        ...(rights.some((right) => right.includes('(')) ? [`REVOKE ALL ON ${table} FROM ${role}`] : []),
        ...(rights.length > 0 ? [`GRANT ${rights.join(', ')} ON ${table} TO ${role}`] : []),
      ]),
      `GRANT EXECUTE ON FUNCTION ${FUNCTIONS.join(', ')} TO ${role}`,
      // For the doctor.
      `GRANT SELECT ON SEQUENCE ${SCHEMA}.${TABLE}_id_seq TO ${role}`,
    ].join(';'),
  );
  await letConnect(owner, user);
}

/** By default every role may connect. Where an administrator has revoked this, a log-in is refused before any right counts. */
async function letConnect(owner: ClientBase, user: string): Promise<void> {
  const may = async (): Promise<{ connect?: boolean; sql?: string }> => {
    const { rows } = await owner.query<{ connect: boolean; sql: string }>(
      `SELECT has_database_privilege($1, current_database(), 'CONNECT') AS connect,
              format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), $1::text) AS sql`,
      [user],
    );
    return rows[0] ?? {};
  };
  const { connect, sql = '' } = await may();
  if (connect === true) return;
  // Postgres only warns an owner of tables who may not grant it.
  await owner.query(sql).catch(() => {});
  if ((await may()).connect === true) return;
  throw new Error(`the role of DATABASE_URL may not connect. Run this as an administrator, then migrate again: ${sql}`);
}

async function makeRole(owner: ClientBase, role: string, password: string): Promise<void> {
  // If the URL has no password, as for a socket, the role gets none.
  const withPassword = password === '' ? '' : ` PASSWORD ${pg.escapeLiteral(scramVerifier(password))}`;
  await owner.query(`CREATE ROLE ${role} LOGIN${withPassword}`).catch((error: { code?: string }) => {
    if (error.code !== INSUFFICIENT_PRIVILEGE) throw error;
    throw new Error(
      `the role ${role} of DATABASE_URL does not exist, and the role of OWNER_DATABASE_URL may not create it: run ` +
        `CREATE ROLE ${role} LOGIN PASSWORD '…', then run this again`,
      { cause: error },
    );
  });
}

/**
 * @returns the text that Postgres stores for a password. The statement contains this text and not the password, because
 *   a server may log statements
 * @see RFC 5802, section 3, and the system catalog `pg_authid` in Postgres's documentation
 */
function scramVerifier(password: string): string {
  const iterations = 4096;
  const salt = randomBytes(16);
  const salted = pbkdf2Sync(password.normalize('NFKC'), salt, iterations, 32, 'sha256');
  const keyOf = (whose: 'Client Key' | 'Server Key'): Buffer => createHmac('sha256', salted).update(whose).digest();
  const storedKey = createHash('sha256').update(keyOf('Client Key')).digest('base64');
  const serverKey = keyOf('Server Key').toString('base64');
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${storedKey}:${serverKey}`;
}
