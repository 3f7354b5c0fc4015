import { describe, expect, it } from 'vitest';
import { orderTimeline } from '../../../src/core/orders/order-timeline.ts';
import { sampleStory } from '../../console/sample-story.ts';

/** Without its cancel. Its second call was answered, in Postgres a moment after the statement that stored the ticket had begun. */
function answered(finishedAt: string, endedAt: string): ReturnType<typeof sampleStory> {
  const story = sampleStory();
  story.placement.finishedAt = finishedAt;
  story.attempts = story.attempts.slice(0, 2).map((each) => (each.attempt === 2 ? { ...each, endedAt } : each));
  story.live = story.live.map((each) => (each.sequence === 2 ? { ...each, appliedAt: finishedAt } : each));
  return story;
}
const STATEMENT = '2027-01-31T18:00:01.2001+00:00';
const WITHIN_IT = '2027-01-31T18:00:01.2059+00:00';

describe('the timeline of an order', () => {
  it('puts an answer before its consequences', () => {
    const happened = orderTimeline(answered(STATEMENT, WITHIN_IT)).map(({ what }) => what);
    const answer = happened.lastIndexOf('call ended');
    expect(happened.slice(answer, answer + 3)).toEqual(['call ended', 'notified', 'placement finished']);
  });

  it('keeps the time of an answer if a webhook came before the answer', () => {
    const story = answered(STATEMENT, WITHIN_IT);
    story.history = story.history.map((event, i) => (i === 0 ? { ...event, recordedAt: STATEMENT } : event));
    const line = orderTimeline(story);
    const answer = line.find(({ what, details }) => what === 'call ended' && details['attempt'] === 2);
    expect(answer?.at).toBe(WITHIN_IT);
  });

  it('keeps the times of calls that ended long before the next entry', () => {
    const line = orderTimeline(sampleStory());
    expect(line.filter(({ what }) => what === 'call ended').map(({ at }) => at)).toEqual(
      sampleStory().attempts.map(({ endedAt }) => endedAt),
    );
  });

  it('sorts entries by their microseconds', () => {
    const at = (time: string): string => `2027-01-31T18:00:01.${time}+00:00`;
    const story = answered(at('2001'), at('200099'));
    const happened = orderTimeline(story).map(({ what }) => what);
    expect(happened.lastIndexOf('call ended')).toBeLessThan(happened.indexOf('placement finished'));
    expect(orderTimeline(story).find(({ at: when }) => when === at('200099'))?.what).toBe('call ended');
  });
});
