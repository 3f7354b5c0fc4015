import type { ComponentChildren } from 'preact';
import { may } from '../may.ts';
import type { Role } from '../wire.ts';

/** What takes a role, or which one it takes for whoever does not have it there. */
export function WithRole({
  needs,
  at,
  to,
  children,
}: {
  needs: Role;
  at: Parameters<typeof may>[1];
  /** What cannot be done without it. */
  to: string;
  children: ComponentChildren;
}) {
  if (may(needs, at)) return children;
  return (
    <span class="faint">
      {to} takes the role {needs} here.
    </span>
  );
}
