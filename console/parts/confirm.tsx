import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { closeDialog, Dialog } from './dialog.tsx';
import { Form } from './form.tsx';
import { useLoaded } from './use-loaded.ts';

const CHECK_EVERY_MS = 5_000;

export type Meanwhile = (signal?: AbortSignal) => Promise<string | undefined>;

type AboutConfirm = {
  title: string;
  action: string;
  isDangerous?: boolean;
  /** False while something is loaded without which it cannot be done. */
  isReady?: boolean;
  /** Asks, also before the action, what others have done since the dialog was opened, so that it is not done again. */
  meanwhile?: Meanwhile;
  /** Runs the action. The dialog shows an error, or the result in place of the question; with false, its fields do. */
  onConfirm: () => Promise<ComponentChildren | void>;
  onClose: () => void;
  children: ComponentChildren;
};

/** Explains an action and asks for confirmation. */
export function Confirm({ title, action, meanwhile, onConfirm, onClose, children, ...about }: AboutConfirm) {
  const [given, setAnswer] = useState<ComponentChildren>();
  // As it was when the dialog was opened.
  const [check] = useState(() => async (signal?: AbortSignal) => {
    const done = await meanwhile?.(signal);
    return done && <p>{done}</p>;
  });
  const { value } = useLoaded(check, [], meanwhile && CHECK_EVERY_MS);
  const answer = given ?? value;
  const close = useRef<HTMLButtonElement>(null);

  const confirm = async (form: HTMLFormElement): Promise<false | void> => {
    const given = (await check()) ?? (await onConfirm());
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
    <Dialog title={answer === undefined ? title : title.replace(/\?$/, '')} onClose={onClose}>
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
