import { batch, effect, signal, type Signal } from '@preact/signals';
import { now } from '../parts/clock.ts';
import { session } from '../sign-in.ts';
import type { Attention } from '../wire.ts';
import { createBoard, type Part } from './create-board.ts';

/** The board, which outlives its page: whoever comes back sees the last one until the new one is there. */
export const board = createBoard();
export const attention = signal<Attention>();
/** Whether there was ever a whole board. */
export const isThere = signal(false);

/** Changes once a frame at most, when the part has changed: who draws the part reads it. */
const turns = {} as Record<Part, Signal<number>>;
for (const part of [...(Object.keys(board.lists) as Part[]), 'counts' as const, 'places' as const]) {
  turns[part] = signal(0);
}

/** Has whoever calls it drawn again when one of them changes. */
export function follow(...parts: Part[]): void {
  for (const part of parts) void turns[part].value;
}

/** A page that nobody sees has no frames; its title still counts. */
const UNSEEN_MS = 1_000;
let isDue = false;

/** To be called after whatever changes the board. */
export function draw(): void {
  if (isDue) return;
  isDue = true;
  if (document.visibilityState === 'visible') requestAnimationFrame(drawNow);
  else setTimeout(drawNow, UNSEEN_MS);
}

function drawNow(): void {
  isDue = false;
  batch(() => {
    for (const part of board.changes()) turns[part].value += 1;
  });
}

effect(() => {
  board.pass(now.value);
  draw();
});

effect(() => {
  if (session.value.state !== 'out') return;
  board.clear();
  attention.value = undefined;
  isThere.value = false;
  draw();
});
