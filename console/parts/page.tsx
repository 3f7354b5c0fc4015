import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

export function usePageTitle(title: string): void {
  // A layout effect comes before the effects of the page's parts, which may add to the title.
  useLayoutEffect(() => {
    document.title = `${title} · The pass`;
  }, [title]);
}

/** A page with its one h1, which takes the focus on navigation, so that a screen reader announces the page. */
export function Page({
  title,
  children,
  beside,
}: {
  title: string;
  children: ComponentChildren;
  /** Actions on the line of the title. */
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
