import { computed, effect } from '@preact/signals';
import { session } from '../sign-in.ts';
import { isInSight } from './follow-in-sight.ts';
import { areNamesAwaited, knownLocations, readNames } from './names.ts';

/** How often names, telephone numbers and groups are read again. */
const EVERY_MS = 300_000;
/** Time until the next try after they could not be read. */
const AGAIN_MS = 10_000;

const state = computed(() => session.value.state);

/** Keeps the names that all pages show. */
effect(() => {
  if (state.value === 'out') knownLocations.value = [];
  if (state.value !== 'in') return undefined;
  let dueAt = 0;
  areNamesAwaited.value = true;
  const read = (): void => {
    if (performance.now() < dueAt || (dueAt > 0 && !isInSight())) return;
    dueAt = performance.now() + EVERY_MS;
    void readNames()
      .catch(() => (dueAt = 0))
      .finally(() => (areNamesAwaited.value = false));
  };
  read();
  const timer = setInterval(read, AGAIN_MS);
  return () => clearInterval(timer);
});
