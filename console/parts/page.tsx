import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

export function usePageTitle(title: string): void {
  // A layout effect runs before the effects of the page's parts, which may add to the title.
  useLayoutEffect(() => {
    document.title = `${title} · The pass`;
  }, [title]);
}

type AboutPage = {
  title: string;
  children: ComponentChildren;
  /** Content next to the title. */
  beside?: ComponentChildren;
};

/** A page with its h1, which gets the focus on navigation, so that a screen reader announces the page. */
export function Page({ title, children, beside }: AboutPage) {
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
