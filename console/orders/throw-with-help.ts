import { Refused } from '../api.ts';
import { helpWith } from './help-with.ts';

/** A handler for `.catch` that adds to the service's refusal what to do now. */
export function throwWithHelp(error: unknown): never {
  if (!(error instanceof Refused) || error.reason === null) throw error;
  const toDo = helpWith(error.reason, { locationId: null, integration: null }).map(({ say }) => say);
  throw new Refused(error.status, [`${error.message}.`, ...toDo].join(' '), error.reason);
}
