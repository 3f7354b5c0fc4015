import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { closeDialog, Dialog } from './dialog.tsx';

/** Explains an action and asks for confirmation. */
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
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const [answer, setAnswer] = useState<ComponentChildren>();
  const close = useRef<HTMLButtonElement>(null);

  const confirm = async (event: { preventDefault(): void; currentTarget: HTMLElement }): Promise<void> => {
    event.preventDefault();
    const { currentTarget } = event;
    setBusy(true);
    setProblem(undefined);
    try {
      const given = await onConfirm();
      if (given === undefined) closeDialog({ currentTarget });
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
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void confirm(event)}>
        {answer ?? children}
        <p class="problem" role="alert">
          {problem}
        </p>
        <div class="buttons">
          <button ref={close} type="button" onClick={closeDialog}>
            {answer === undefined ? 'Back' : 'Close'}
          </button>
          {answer === undefined && (
            <button type="submit" class={isDangerous ? 'danger' : 'primary'} disabled={isBusy || !isReady}>
              {action}
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}
