import type { ComponentChildren } from 'preact';

/** One line of a list of facts. It is left out if there is nothing to say. */
export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  if (children === null || children === false) return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
