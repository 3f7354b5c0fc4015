import { signal } from '@preact/signals';

/** A choice of the operator, stored in this browser. Without storage, it lasts until the page is closed. */
export function storedChoice(key: string, isOnAtFirst: boolean) {
  const choice = signal(isOnAtFirst);
  try {
    choice.value = (localStorage.getItem(key) ?? (isOnAtFirst ? 'on' : 'off')) === 'on';
  } catch {
    // A browser may allow no storage.
  }
  return {
    get value(): boolean {
      return choice.value;
    },
    store(isOn: boolean): void {
      choice.value = isOn;
      try {
        localStorage.setItem(key, isOn ? 'on' : 'off');
      } catch {
        // See above.
      }
    },
  };
}
