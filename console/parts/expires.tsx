import { now } from './clock.ts';
import { Choice } from './form.tsx';

const DAY_MS = 24 * 60 * 60_000;
const LENGTHS = Object.entries({ 30: 'after 30 days', 90: 'after 90 days', 365: 'after a year', '': 'never' });

/** The choice of when a token ends. */
export function Expires({ id, days, onChoose }: { id: string; days: string; onChoose: (days: string) => void }) {
  return <Choice id={id} label="Expires" value={days} options={LENGTHS} onChoose={onChoose} />;
}

/** The time after so many days from now on. Null for never. */
export const endAfter = (days: string): string | null =>
  days === '' ? null : new Date(now.peek() + Number(days) * DAY_MS).toISOString();
