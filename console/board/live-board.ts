import { batch, computed, effect, signal, type Signal } from '@preact/signals';
import { now } from '../parts/clock.ts';
import { session } from '../sign-in.ts';
import type { Attention } from '../wire.ts';
import { createBoard, type Part } from './create-board.ts';
import { elsewhere } from './wrong-with.ts';

/** The board, which outlives its page: on return the last one is shown until the new one is complete. */
export const board = createBoard();
export const attention = signal<Attention>();
/** What that says of single tickets. */
export const known = computed(() => elsewhere(attention.value));
/** True once there was a whole board. */
export const isThere = signal(false);

/** A signal for each part, which changes at most once a frame. Components that draw the part read it. */
const turns = {} as Record<Part, Signal<number>>;
for (const part of [...(Object.keys(board.lists) as Part[]), 'counts' as const, 'places' as const]) {
  turns[part] = signal(0);
}

/** Redraws the calling component when one of the parts changes. */
export function follow(...parts: Part[]): void {
  for (const part of parts) void turns[part].value;
}

/** Interval of updates for a hidden page, which has no frames; its title still counts. */
const UNSEEN_MS = 1_000;
let isDue = false;

/** Draws after changes of the board. */
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
