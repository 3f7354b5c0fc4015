import { signal } from '@preact/signals';

/** Milliseconds since the epoch, updated every second while the page is visible: ages on screen follow it. */
export const now = signal(Date.now());

const tick = (): void => {
  if (document.visibilityState === 'visible') now.value = Date.now();
};
setInterval(tick, 1_000);
document.addEventListener('visibilitychange', tick);
