import { FOLLOW_CLOSES, FOLLOW_REFUSALS, type FollowObserved } from '../core/domain/observed.ts';
import type { Count } from './count-by.ts';
import type { GaugeBy } from './gauge-by.ts';
import type { Measure } from './measure-by.ts';
import type { Labels } from './series-of.ts';

/** Upper bounds in seconds: a member sees no difference below the first. */
const LAG = [0.05, 0.1, 0.15, 0.25, 0.5, 1, 2, 5, 10];

/** Makes the metrics of the streams to members' clients. */
export function followMetrics(
  counter: (name: string, help: string, labels: Labels) => Count,
  gauge: GaugeBy,
  histogram: (name: string, help: string, buckets: number[], labels: Labels) => Measure,
): (observed: FollowObserved) => void {
  let streams = 0;
  gauge('expediter_follow_streams', 'Open streams to members.', [], (set) => set(streams));
  const opened = counter('follow_opened_total', 'Streams to members that were opened.', {});
  const refused = counter('follow_refused_total', 'Requests to follow an order that were refused, by why.', {
    reason: FOLLOW_REFUSALS,
  });
  const closed = counter('follow_closed_total', 'Streams to members that were closed, by why.', {
    reason: FOLLOW_CLOSES,
  });
  const lag = histogram('follow_lag_seconds', "From a message's commit to its write into a stream.", LAG, {});
  return (observed) => {
    if (observed.did === 'tell') lag(observed.milliseconds / 1_000);
    else if (observed.did === 'refuse') refused(observed.why);
    else if (observed.did === 'open') {
      streams += 1;
      opened();
    } else {
      streams -= 1;
      closed(observed.why);
    }
  };
}
