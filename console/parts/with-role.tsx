import type { ComponentChildren } from 'preact';
import { may } from '../may.ts';
import type { NeededRole } from '../wire.ts';

type AboutWithRole = {
  needs: NeededRole;
  at: Parameters<typeof may>[1];
  /** The action, such as `To retry it`. */
  to: string;
  children?: ComponentChildren;
};

/** Shows `children`. If the operator lacks the role there, shows only which role is needed, and who gives it. */
export function WithRole({ needs, at, to, children }: AboutWithRole) {
  if (may(needs, at)) return children;
  return (
    <span class="faint">
      {to}, you need the role {needs}
      {typeof at === 'string' && ' here'}.{' '}
      {may('admin', at) ? <a href="/console/people">Give the role on the page People.</a> : 'Ask an administrator.'}
    </span>
  );
}
