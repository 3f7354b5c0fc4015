import type { ToldAct } from '../core/operators/read-audit.ts';
import { table, time } from './print.ts';

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
