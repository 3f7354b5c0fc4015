import { WEBHOOK_OUTCOMES } from '../core/domain/webhook.ts';
import type { Now } from '../core/postgres/database-clock.ts';
import type { SpillState } from '../core/spill/spill-state.ts';
import type { Count } from './count-by.ts';
import type { GaugeBy } from './gauge-by.ts';
import type { Labels } from './series-of.ts';

/** Makes the metrics of the spill. Where there is none, they do not exist. */
export function spillMetrics(
  counter: (name: string, help: string, labels: Labels) => Count,
  gauge: GaugeBy,
  { now, state }: { now: Now; state: () => SpillState },
): { spilled: Count; drained: Count } {
  gauge('expediter_spill_waiting', 'Webhooks that this process knows to wait in the spill.', [], (set) =>
    set(state().waiting),
  );
  gauge('expediter_spill_oldest_seconds', 'Age of the oldest of them.', [], (set) => {
    const { oldestAt } = state();
    set(oldestAt === null ? 0 : (now().getTime() - oldestAt.getTime()) / 1_000);
  });
  return {
    spilled: counter('spill_webhooks_total', 'Webhooks that Postgres did not take in time, by whether Pub/Sub did.', {
      outcome: ['spilled', 'refused'],
    }),
    drained: counter('spill_drained_total', 'Messages of the spill by what became of them.', {
      outcome: [...WEBHOOK_OUTCOMES, 'known', 'put_back', 'unopened'],
    }),
  };
}
