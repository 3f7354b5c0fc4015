/**
 * Archives and drops a month of past orders, as the service does, in its own process. The arguments are the database's
 * URL, the archive's URL, the month and the orders of a file. It sends a message when it begins.
 */
import { archiveMonth } from '../../src/core/retention/archive.ts';
import { archiveStore } from '../../src/core/retention/archive-store.ts';
import { dropOldPartitions } from '../../src/core/retention/retention-rules.ts';
import { openDatabase } from '../../src/database/open-database.ts';

const [databaseUrl, archiveUrl, month, perPart] = process.argv.slice(2) as [string, string, string, string];
const { pool } = openDatabase(databaseUrl, 5, () => {});
const store = archiveStore(archiveUrl);
await pool.query('SELECT');
process.send?.('begins');
await dropOldPartitions(pool, 'past_orders', 60, {
  archive: () => archiveMonth(pool, store, month, { perPart: Number(perPart) }),
});
process.exit();
