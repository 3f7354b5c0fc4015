/** The bodies held in memory are too many; the sender may come again. */
export class NoRoom extends Error {
  override readonly name = 'NoRoom';
}

export type BodyBudget = {
  /** A body of this location begins to arrive. `take` counts its bytes and throws NoRoom; `release` gives them back. */
  open(locationId: string): { take(bytes: number): void; release(): void };
};

/**
 * Bounds the memory that bodies hold, in all and for one location, which gets a quarter: a flood starves itself.
 * @param limit bytes
 */
export function bodyBudget(limit: number): BodyBudget {
  const heldOf = new Map<string, number>();
  let held = 0;
  return {
    open(locationId) {
      let mine = 0;
      return {
        take(bytes) {
          const here = heldOf.get(locationId) ?? 0;
          if (held + bytes > limit || here + bytes > limit / 4) throw new NoRoom('too many bytes are held already');
          held += bytes;
          mine += bytes;
          heldOf.set(locationId, here + bytes);
        },
        release() {
          const left = (heldOf.get(locationId) ?? 0) - mine;
          held -= mine;
          mine = 0;
          if (left > 0) heldOf.set(locationId, left);
          else heldOf.delete(locationId);
        },
      };
    },
  };
}
