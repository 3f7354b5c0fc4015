import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

/** Member data, not loaded before somebody wants to see it. Reading it is logged by the service. */
export function Reveal({
  what,
  onReveal,
  children,
}: {
  what: string;
  /** Called to reveal other masked parts of the page. */
  onReveal?: () => void;
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
      <button
        type="button"
        onClick={() => {
          setShown(true);
          onReveal?.();
        }}
      >
        Reveal {what}
      </button>
      <span class="faint">It is logged that it was read.</span>
    </div>
  );
}
