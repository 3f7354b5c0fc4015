import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { closeDialog, Dialog } from './dialog.tsx';
import { Form } from './form.tsx';

/** Explains an action and asks for confirmation. */
export function Confirm({
  title,
  action,
  onConfirm,
  onClose,
  children,
  ...about
}: {
  title: string;
  action: string;
  isDangerous?: boolean;
  /** False while something is loaded without which it cannot be done. */
  isReady?: boolean;
  /** Runs the action. The dialog shows an error, or the result in place of the question; with false, its fields do. */
  onConfirm: () => Promise<ComponentChildren | void>;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const [answer, setAnswer] = useState<ComponentChildren>();
  const close = useRef<HTMLButtonElement>(null);

  const confirm = async (form: HTMLFormElement): Promise<false | void> => {
    const given = await onConfirm();
    if (given === false) return false;
    if (given === undefined) closeDialog({ currentTarget: form });
    else setAnswer(given);
    return undefined;
  };

  // The focused button was removed, so “Close” gets the focus.
  useEffect(() => {
    if (answer !== undefined) close.current?.focus();
  }, [answer]);

  return (
    <Dialog title={title} onClose={onClose}>
      <Form
        {...about}
        action={answer === undefined ? action : undefined}
        back={
          <button ref={close} type="button" onClick={closeDialog}>
            {answer === undefined ? 'Back' : 'Close'}
          </button>
        }
        onSubmit={confirm}
      >
        {answer ?? children}
      </Form>
    </Dialog>
  );
}
