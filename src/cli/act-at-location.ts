import type { Pool } from 'pg';
import { findLocation } from '../core/locations/locations.ts';
import { audited } from '../core/operators/audit.ts';
import { commandLineActor } from './command-line-actor.ts';
import { noSuchLocation } from './failures.ts';

/**
 * Does something at a location as an act of whoever runs the command.
 * @param after a code for what came of it; by default whether the location takes orders
 * @throws NotFound if there is no such location
 */
export async function actAtLocation<Result>(
  pool: Pool,
  did: string,
  locationId: string,
  work: () => Promise<Result>,
  after?: (result: Result) => string | undefined,
): Promise<Result> {
  if ((await findLocation(pool, locationId)) === undefined) throw noSuchLocation(locationId);
  return audited(pool, commandLineActor(), { did, locationId }, work, after);
}
