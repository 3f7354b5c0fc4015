import { signal } from '@preact/signals';

/** The sentence for a screen reader. */
export const announced = signal('');

/** Announces a change to screen readers. Use it sparingly. */
export function announce(sentence: string): void {
  // A screen reader repeats a sentence only if the text differs.
  announced.value = announced.value === sentence ? `${sentence}\u00a0` : sentence;
}
