import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { WithRole } from './with-role.tsx';

/** Member data, not loaded before somebody wants to see it. Who reads it is in the audit. */
export function Reveal({
  what,
  at,
  children,
}: {
  what: string;
  /** Its location. */
  at: string | null;
  children: () => ComponentChildren;
}) {
  const [isShown, setShown] = useState(false);
  const revealed = useRef<HTMLElement>(null);
  // The button that had the focus is gone.
  useEffect(() => {
    if (isShown) revealed.current?.focus({ preventScroll: true });
  }, [isShown]);

  if (isShown) {
    return (
      <section ref={revealed} tabIndex={-1} aria-label={what}>
        {children()}
      </section>
    );
  }
  return (
    <div class="masked">
      <span aria-hidden="true">••••••••••••</span>
      <WithRole needs="member-data" at={at} to={`To reveal ${what}`}>
        <button type="button" onClick={() => setShown(true)}>
          Reveal {what}
        </button>
        <span class="faint">It is written down that you read it.</span>
      </WithRole>
    </div>
  );
}
