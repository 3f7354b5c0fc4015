import { describe, expect, it } from 'vitest';
import { checkAnswers, type Answers } from '../../chaos/check-answers.ts';

const answered = (...statuses: (number | 'timeout')[]): Answers => new Map(statuses.map((status) => [status, 1]));

describe('an answer that is not in the contract', () => {
  it.each([401, 413, 404, 400, 204])('is a complaint, whatever the faults: %i', (status) => {
    expect(checkAnswers(answered(200, status, 500), new Set(['kill', 'roll']))).toEqual([
      `1 webhooks were answered ${status}`,
    ]);
  });

  it.each([502, 503, 'timeout'] as const)('is one where processes are replaced and none is killed: %s', (status) => {
    expect(checkAnswers(answered(200, status), new Set(['roll']))).toEqual([`1 webhooks were answered ${status}`]);
    expect(checkAnswers(answered(200, status), new Set(['roll', 'kill']))).toEqual([]);
  });

  it('is none of our two', () => {
    expect(checkAnswers(answered(200, 500), new Set(['roll']))).toEqual([]);
  });
});
