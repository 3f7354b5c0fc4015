import { signal } from '@preact/signals';

/** What a screen reader says next. */
export const announced = signal('');

/** Says to those who cannot see it what changed on the page; sparingly. */
export function announce(sentence: string): void {
  // The same sentence twice is said twice.
  announced.value = announced.value === sentence ? `${sentence}\u00a0` : sentence;
}
