import type { Backlog } from '../core/orders/sample-backlog.ts';
import type { GaugeBy } from './event.ts';

/** What waits, and for how many seconds something has kept Postgres from removing dead rows. */
export type Sampled = Backlog & { vacuumHeldS: number };

type KeysOf<Value> = { [Key in keyof Sampled]: Sampled[Key] extends Value ? Key : never }[keyof Sampled];

/**
 * Shows what Postgres held at the last sample. Every process shows the same, so an alert takes the largest.
 * @param sampled returns undefined if there is no sample, and then nothing is shown
 */
export function backlogGauges(
  gauge: GaugeBy,
  integrations: readonly string[],
  sampled: () => Sampled | undefined,
): void {
  const one = (name: string, help: string, key: KeysOf<number>): void =>
    gauge(name, help, [], (set) => {
      const backlog = sampled();
      if (backlog !== undefined) set(backlog[key]);
    });
  const byIntegration = (name: string, help: string, key: 'silent' | 'lasts'): void =>
    gauge(name, help, ['integration'], (set) => {
      const backlog = sampled();
      for (const integration of integrations) {
        const seconds = backlog?.[key][integration];
        if (seconds !== undefined) set(seconds, { integration });
      }
    });

  gauge('expediter_placements_open', 'Orders that are not at their POS yet.', ['state'], (set) => {
    const backlog = sampled();
    if (backlog === undefined) return;
    set(backlog.waiting, { state: 'waiting' });
    set(backlog.held, { state: 'held' });
    set(backlog.paused, { state: 'paused' });
    set(backlog.inDoubt, { state: 'in_doubt' });
  });
  const silent = 'Since a webhook of any of its locations was accepted last.';
  byIntegration('expediter_integration_silent_seconds', silent, 'silent');
  const lasts = 'Until the first connection of any of its locations ends, unless it is renewed.';
  byIntegration('expediter_connection_left_seconds', lasts, 'lasts');
  one('expediter_placements_for_operator', 'In doubt until somebody looks at the POS.', 'forOperator');
  one('expediter_cancellations_by_phone', 'To be cancelled by a person, on the telephone.', 'byPhone');
  one('expediter_reconnect_needed', 'Held until a person renews a connection.', 'reconnectNeeded');
  gauge(
    'expediter_operator_acts',
    'Operator actions in the last hour. member_data: of the one operator with most.',
    ['act'],
    (set) => {
      const { acts } = sampled() ?? {};
      if (acts === undefined) return;
      set(acts.memberData, { act: 'member_data' });
      set(acts.admin, { act: 'admin' });
      set(acts.operatorToken, { act: 'operator_token' });
    },
  );
  one('expediter_placement_oldest_open_seconds', 'Since the oldest signal that waits.', 'oldestWaiting');
  one('expediter_orders_unreceived', 'Sent 5 to 60 minutes ago, and no word since.', 'unreceived');
  one('expediter_outbox_oldest_seconds', 'Age of the oldest unpublished message.', 'oldestUnpublished');
  one('expediter_parked_events', 'Events that wait for their POS id to become ours.', 'parked');
  const held = 'For how long something has kept Postgres from removing dead rows.';
  one('expediter_vacuum_held_seconds', held, 'vacuumHeldS');
}
