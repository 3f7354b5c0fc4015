import { computed, signal } from '@preact/signals';

/** Milliseconds since the epoch, updated every second while the page is visible: ages on screen follow it. */
export const now = signal(Date.now());

const tick = (): void => {
  if (document.visibilityState === 'visible') now.value = Date.now();
};
setInterval(tick, 1_000);
document.addEventListener('visibilitychange', tick);

/** The same, but updated every ten seconds, for what need not be exact. */
export const tenSeconds = computed(() => Math.floor(now.value / 10_000) * 10_000);
