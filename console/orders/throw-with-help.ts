import { Refused } from '../api.ts';
import { helpWith } from '../../src/core/domain/explain-cause.ts';

/** A handler for `.catch` that adds the next steps to the service's refusal. */
export function throwWithHelp(error: unknown): never {
  if (!(error instanceof Refused) || error.reason === null) throw error;
  const toDo = helpWith(error.reason, { locationId: null, integration: null }).map(({ say }) => say);
  throw new Refused(error.status, [`${error.message}.`, ...toDo].join(' '), {
    reason: error.reason,
  });
}
