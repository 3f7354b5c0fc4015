import { useLocation } from 'preact-iso';
import type { ComponentChildren, ComponentType } from 'preact';
import { useErrorBoundary, useState } from 'preact/hooks';
import { NotFound } from './not-found.tsx';
import { Page } from './parts/page.tsx';

/** Where it is kept that the console was loaded anew, and when: a page that is gone for good is not asked for again and again. */
const KEY = 'expediter.loaded-anew';
const ONCE_IN_MS = 60_000;

/** In place of a page that broke: that it did, and how to go on. Another page is another try. */
export function Unbroken({ children }: { children: ComponentChildren }) {
  const { url } = useLocation();
  const [broken, setBroken] = useState<{ url: string; error: unknown }>();
  useErrorBoundary((error: unknown) => {
    console.error(error);
    setBroken({ url, error });
  });
  if (broken?.url !== url) return children;
  // An address that is not well encoded names nothing.
  return broken.error instanceof URIError ? (
    <NotFound />
  ) : (
    <Broken why="It is the console's fault, not the service's." />
  );
}

/**
 * To be shown in place of a page of which the files could not be loaded. After a deployment there are others: then the
 * console is loaded anew by itself, once.
 */
export async function pageGone(): Promise<ComponentType> {
  if (loadsAnew()) {
    location.reload();
    await new Promise(() => {});
  }
  return () => <Broken why="The console was updated, or the service cannot be reached." />;
}

function Broken({ why }: { why: string }) {
  return (
    <Page title="This page cannot be shown">
      <p>{why}</p>
      <button type="button" class="primary" onClick={() => location.reload()}>
        Load it anew
      </button>
    </Page>
  );
}

function loadsAnew(): boolean {
  // Without a network there would be the browser's own page instead.
  if (!navigator.onLine) return false;
  try {
    const before = Number(sessionStorage.getItem(KEY));
    sessionStorage.setItem(KEY, String(Date.now()));
    return Date.now() - before > ONCE_IN_MS;
  } catch {
    return false;
  }
}
