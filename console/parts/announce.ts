import { signal } from '@preact/signals';

/** The sentence for a screen reader. */
export const announced = signal('');

/** Announces a change on the page to those who cannot see it. To be used sparingly. */
export function announce(sentence: string): void {
  // A repeated sentence is announced again only if it differs.
  announced.value = announced.value === sentence ? `${sentence}\u00a0` : sentence;
}
