import { batch, computed, effect, signal, type Signal } from '@preact/signals';
import { now } from '../parts/clock.ts';
import { session } from '../sign-in.ts';
import type { Attention } from '../wire.ts';
import { createBoard, type Part } from './create-board.ts';
import { elsewhere } from './wrong-with.ts';

/** The board stays in memory when its page closes. On return, it is shown until the new board is complete. */
export const board = createBoard();
export const attention = signal<Attention>();
/** What `attention` says about single tickets. */
export const known = computed(() => elsewhere(attention.value));
/** True when a complete board was received. */
export const isThere = signal(false);

/** A signal for each part. It changes at most once a frame. */
const turns = {} as Record<Part, Signal<number>>;
for (const part of [...(Object.keys(board.lists) as Part[]), 'counts' as const, 'places' as const]) {
  turns[part] = signal(0);
}

/** Redraws the calling component when one of the parts changes. */
export function follow(...parts: Part[]): void {
  for (const part of parts) void turns[part].value;
}

/** How often a hidden page is updated. It gets no animation frames, but its title shows the number of needs. */
const UNSEEN_MS = 1_000;
let isDue = false;

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
