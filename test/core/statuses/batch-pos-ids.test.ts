import { describe, expect, test } from 'vitest';
import type { PosId } from '../../../src/core/domain/webhook.ts';
import { batchPosIds } from '../../../src/core/statuses/batch-pos-ids.ts';

const posId = (providerOrderId: string): PosId => ({ locationId: 'club-1', integration: 'standard', providerOrderId });

/** A re-drive that takes until it is told to end. */
function slowRedrive(): {
  rounds: string[][];
  redrive: (posIds: readonly PosId[]) => Promise<void>;
  end: (error?: Error) => Promise<void>;
} {
  const rounds: string[][] = [];
  const ends: ((error?: Error) => void)[] = [];
  return {
    rounds,
    redrive: (posIds) => {
      rounds.push(posIds.map((each) => each.providerOrderId));
      return new Promise((resolve, reject) => {
        ends.push((error) => (error === undefined ? resolve() : reject(error)));
      });
    },
    async end(error) {
      ends.shift()?.(error);
      await new Promise(setImmediate);
    },
  };
}

describe('POS ids that became ours', () => {
  test('are re-driven at once, and those that come meanwhile as one', async () => {
    const { rounds, redrive, end } = slowRedrive();
    const onPosIds = batchPosIds(redrive, () => {});
    onPosIds([posId('a')]);
    onPosIds([posId('b')]);
    onPosIds([posId('c'), posId('d')]);
    expect(rounds).toEqual([['a']]);
    await end();
    expect(rounds).toEqual([['a'], ['b', 'c', 'd']]);
    await end();
    onPosIds([posId('e')]);
    expect(rounds.at(-1)).toEqual(['e']);
  });

  test('none, and nobody asks Postgres', () => {
    const { rounds, redrive } = slowRedrive();
    batchPosIds(redrive, () => {})([]);
    expect(rounds).toEqual([]);
  });

  test('a re-drive that fails is told, and the next ids go on', async () => {
    const { rounds, redrive, end } = slowRedrive();
    const told: unknown[] = [];
    const onPosIds = batchPosIds(redrive, (error) => told.push(error));
    const away = new Error('Postgres is away');
    onPosIds([posId('a')]);
    onPosIds([posId('b')]);
    await end(away);
    expect(told).toEqual([away]);
    expect(rounds).toEqual([['a'], ['b']]);
  });
});
