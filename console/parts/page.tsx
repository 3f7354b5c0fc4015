import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

export function usePageTitle(title: string): void {
  // Before the effects of what is on the page, which may say more there.
  useLayoutEffect(() => {
    document.title = `${title} · The pass`;
  }, [title]);
}

/**
 * A page: its one h1, which takes the focus when the page is come to from another one, so that a screen reader says where
 * one is.
 */
export function Page({
  title,
  children,
  beside,
}: {
  title: string;
  children: ComponentChildren;
  /** On the line of the title: what can be done here. */
  beside?: ComponentChildren;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  usePageTitle(title);
  useEffect(() => {
    if (isFirstPage) isFirstPage = false;
    else heading.current?.focus({ preventScroll: true });
  }, []);
  return (
    <>
      <div class="page-head">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {beside}
      </div>
      {children}
    </>
  );
}

let isFirstPage = true;
