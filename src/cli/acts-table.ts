import type { Pool } from 'pg';
import type { ToldAct } from '../core/operators/read-audit.ts';
import { table, time } from './print.ts';
import { findLocation } from '../core/locations/locations.ts';
import { audited } from '../core/operators/audit.ts';
import { commandLineActor } from './command-line-actor.ts';
import { noSuchLocation } from './failures.ts';

/** One line for each act. @param none said where there is none */
export function actsTable(acts: readonly (ToldAct & { source?: string | null })[], none = ''): string {
  return table(
    acts.map(({ at, by, source, did, locationId, serviceOrderId, webhookId, subject, before, outcome, after }) => ({
      at: time(at),
      by: `${by.name} (${by.kind.replace('_', ' ')})`,
      ...(source !== undefined && { from: source }),
      did,
      location: locationId,
      order: serviceOrderId,
      webhook: webhookId,
      about: subject,
      before,
      outcome: outcome ?? 'unknown',
      after,
    })),
    none,
  );
}

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
