import { expect, it } from 'vitest';
import { takeTurns } from '../../src/http/take-turns.ts';

it('callers take turns, so that a caller with much work delays another caller by only one piece of work', async () => {
  const turn = takeTurns(1);
  const done: string[] = [];
  const work = async (caller: string): Promise<void> => {
    const end = await turn(caller);
    done.push(caller);
    await Promise.resolve();
    end();
  };
  await Promise.all(['a', 'a', 'a', 'a', 'b', 'c', 'b'].map(work));
  expect(done.join('')).toBe('aabcaba');
});

it('a piece of work waits while as many as allowed are running', async () => {
  const turn = takeTurns(2);
  const ends = await Promise.all([turn('a'), turn('b')]);
  let isThird = false;
  const third = turn('a').then((end) => {
    isThird = true;
    return end;
  });
  await new Promise(setImmediate);
  expect(isThird).toBe(false);
  ends[0]();
  (await third)();
  ends[1]();
  // Nothing is left running: two may begin at once again.
  await Promise.all([turn('a'), turn('a')]);
});
