import { withinShare } from '../core/domain/within-share.ts';

/** Too many bytes of bodies are held in memory. The sender may retry. */
export class NoRoom extends Error {
  override readonly name = 'NoRoom';
}

export type BodyBudget = {
  /** Starts a body of this location. `take` counts its bytes and throws NoRoom; `release` frees them. */
  open(locationId: string): { take(bytes: number): void; release(): void };
};

/**
 * Bounds the memory of all bodies. One location gets a share of what is free, so floods and slow senders starve
 * themselves, however many there are.
 * @param limit bytes
 */
export function bodyBudget(limit: number): BodyBudget {
  // Nothing is deleted: in a Map that changes with every webhook the garbage collector would keep what is over.
  const heldOf = new Map<string, number>();
  let held = 0;
  return {
    open(locationId) {
      let mine = 0;
      return {
        take(bytes) {
          const here = (heldOf.get(locationId) ?? 0) + bytes;
          if (!withinShare(here, held + bytes, limit)) throw new NoRoom('too many bytes are held already');
          held += bytes;
          mine += bytes;
          heldOf.set(locationId, here);
        },
        release() {
          heldOf.set(locationId, (heldOf.get(locationId) ?? 0) - mine);
          held -= mine;
          mine = 0;
        },
      };
    },
  };
}
