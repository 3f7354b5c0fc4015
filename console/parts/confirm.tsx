import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';

/**
 * Explains an action and asks for confirmation. The browser's own dialog traps the focus, closes on Escape, and returns
 * the focus.
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
  action: string;
  isDangerous?: boolean;
  /** False while required input is missing. */
  isReady?: boolean;
  /** Runs the action. The dialog shows an error, or the result in place of the question. */
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

  // The focused button was removed, so “Close” gets the focus.
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
