import type { ComponentChildren } from 'preact';

/** A button that opens a dialog, as its ellipsis says. */
export function AskButton({
  children,
  ...about
}: {
  class?: string;
  disabled?: boolean;
  'aria-label'?: string;
  onClick: (event: { currentTarget: HTMLElement }) => void;
  children: ComponentChildren;
}) {
  return (
    <button type="button" {...about}>
      {children} …
    </button>
  );
}
