import type { SpillAnswer } from './wire.ts';

/** The banner's words and colour; undefined if Postgres is there and nothing waits. */
export function outageInWords({ database, waiting }: SpillAnswer): { tone: 'bad' | 'busy'; text: string } | undefined {
  const webhooks = `${waiting.toLocaleString('en')} webhook${waiting === 1 ? '' : 's'}`;
  if (database === 'down' || database === 'read_only') {
    const away = database === 'down' ? 'Postgres is away' : 'Postgres takes no writes';
    const text = waiting === 0 ? away : `${away}: ${webhooks} ${waiting === 1 ? 'waits' : 'wait'} in the spill`;
    return { tone: 'bad', text };
  }
  if (waiting === 0) return undefined;
  return { tone: 'busy', text: `${webhooks} of the outage ${waiting === 1 ? 'is' : 'are'} being applied` };
}
