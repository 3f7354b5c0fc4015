import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

type AboutDialog = {
  title: string;
  onClose: () => void;
  class?: string;
  onKeyDown?: (event: KeyboardEvent) => void;
  children: ComponentChildren;
};

/** The browser's own dialog: it traps the focus, closes on Escape, and returns the focus. */
export function Dialog({ title, children, ...about }: AboutDialog) {
  const dialog = useRef<HTMLDialogElement>(null);
  // A layout effect runs before the next key, so that no letter is lost.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-label={title} {...about}>
      <h2>{title}</h2>
      {children}
    </dialog>
  );
}

/** The last line of a dialog that asks nothing. */
export function CloseDialog({ words = 'Close' }: { words?: string }) {
  return (
    <div class="buttons">
      <button type="button" onClick={closeDialog}>
        {words}
      </button>
    </div>
  );
}

/** Closes the dialog of a button, as Escape does. */
export function closeDialog({ currentTarget }: { currentTarget: HTMLElement }): void {
  currentTarget.closest('dialog')?.close();
}
