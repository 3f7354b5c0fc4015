/** What one process knows of the spill. */
export type SpillState = {
  /** Webhooks that it spilled since Postgres is away, and those that it has received and not drained yet. */
  waiting: number;
  /** When the oldest of them came. */
  oldestAt: Date | null;
};

export const NONE_WAITING: SpillState = { waiting: 0, oldestAt: null };
