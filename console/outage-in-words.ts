import type { SpillAnswer } from './wire.ts';

/** The banner's text and tone. Undefined if Postgres is available and no webhook waits. */
export function outageInWords({ database, waiting }: SpillAnswer): { tone: 'bad' | 'busy'; text: string } | undefined {
  const webhooks = `${waiting.toLocaleString('en')} webhook${waiting === 1 ? '' : 's'}`;
  if (database === 'down' || database === 'read_only') {
    const state = database === 'down' ? 'Postgres is unavailable' : 'Postgres is read-only';
    const text = waiting === 0 ? state : `${state}: ${webhooks} ${waiting === 1 ? 'waits' : 'wait'} in the spill`;
    return { tone: 'bad', text };
  }
  if (waiting === 0) return undefined;
  return { tone: 'busy', text: `${webhooks} stored during the outage ${waiting === 1 ? 'is' : 'are'} being applied` };
}
