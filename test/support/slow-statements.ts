/**
 * Loaded before a program (`--import`) with `SLOW`, a seed, makes each named statement of this process late by 0 to 300 ms, so that whatever depends on two
 * statements' order by chance fails. The delays follow from the seed and the number of the statement.
 */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

const MOST_MS = 300;
const seed = process.env['SLOW'] ?? '';

type Query = (this: pg.Client, ...given: unknown[]) => unknown;

const query = pg.Client.prototype.query as Query;
let nth = 0;
const delayMs = (): number =>
  (createHash('sha256').update(`${seed} ${nth++}`).digest().readUInt16BE() / 65_536) * MOST_MS;
/** The last late statement of each connection: what comes behind it waits, so that a connection keeps its order. */
const late = new WeakMap<pg.Client, Promise<unknown>>();

const slowly: Query = function (...given) {
  const [statement] = given as [{ name?: string } | string | undefined];
  const isNamed = typeof statement === 'object' && statement?.name !== undefined;
  const before = late.get(this);
  if (!isNamed && before === undefined) return query.apply(this, given);
  const due = Promise.all([before, isNamed && sleep(delayMs())]);
  late.set(this, due);
  return due.then(() => {
    if (late.get(this) === due) late.delete(this);
    return query.apply(this, given);
  });
};
pg.Client.prototype.query = slowly as typeof pg.Client.prototype.query;
