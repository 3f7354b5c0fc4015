import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';

/**
 * Asks before an action, and explains it. Uses the browser's own dialog: it holds the focus, Escape closes it, and the
 * focus returns to where it was.
 */
export function Confirm({
  title,
  action,
  isDangerous = false,
  isReady = true,
  onConfirm,
  onClose,
  children,
}: {
  title: string;
  /** The text of the button. */
  action: string;
  isDangerous?: boolean;
  /** False while required input is missing. */
  isReady?: boolean;
  /** Does the action. An error is shown in the dialog; so is the result, in place of the question. */
  onConfirm: () => Promise<ComponentChildren | void>;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const [answer, setAnswer] = useState<ComponentChildren>();
  const close = useRef<HTMLButtonElement>(null);
  useEffect(() => dialog.current?.showModal(), []);

  const confirm = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      const given = await onConfirm();
      if (given === undefined) dialog.current?.close();
      else setAnswer(given);
    } catch (error) {
      setProblem((error as Error).message);
      setBusy(false);
    }
  };

  // The button that had the focus is gone.
  useEffect(() => {
    if (answer !== undefined) close.current?.focus();
  }, [answer]);

  return (
    <dialog ref={dialog} aria-labelledby={titleId} onClose={onClose}>
      <form onSubmit={(event) => void confirm(event)}>
        <h2 id={titleId}>{title}</h2>
        {answer ?? children}
        <p class="problem" role="alert">
          {problem}
        </p>
        <div class="buttons">
          <button ref={close} type="button" onClick={() => dialog.current?.close()}>
            {answer === undefined ? 'Back' : 'Close'}
          </button>
          {answer === undefined && (
            <button type="submit" class={isDangerous ? 'danger' : 'primary'} disabled={isBusy || !isReady}>
              {action}
            </button>
          )}
        </div>
      </form>
    </dialog>
  );
}
