import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { WithRole } from './with-role.tsx';

/** Member data, loaded only on request. The audit records who reads it. */
export function Reveal({ what, at, children }: { what: string; at: string | null; children: () => ComponentChildren }) {
  const [isShown, setShown] = useState(false);
  const revealed = useRef<HTMLElement>(null);
  // The focused button was removed, so the revealed section gets the focus.
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
    <div class="row masked">
      <span aria-hidden="true">••••••••••••</span>
      <WithRole needs="member-data" at={at} to={`To reveal ${what}`}>
        <button type="button" onClick={() => setShown(true)}>
          Reveal {what}
        </button>
        <span class="faint">Viewing is logged.</span>
      </WithRole>
    </div>
  );
}
