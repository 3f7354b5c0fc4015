import { useLocation } from 'preact-iso';
import type { ComponentChildren, ComponentType } from 'preact';
import { useErrorBoundary, useState } from 'preact/hooks';
import { NotFound } from './not-found.tsx';
import { Page } from './parts/page.tsx';

/** Key for the time of the last automatic reload, so that a page that is gone is not reloaded again and again. */
const KEY = 'expediter.loaded-anew';
const ONCE_IN_MS = 60_000;

/** Shows an error in place of a page that failed, and how to continue. Another page is tried anew. */
export function Unbroken({ children }: { children: ComponentChildren }) {
  const { url } = useLocation();
  const [broken, setBroken] = useState<{ url: string; error: unknown }>();
  useErrorBoundary((error: unknown) => {
    console.error(error);
    setBroken({ url, error });
  });
  if (broken?.url !== url) return children;
  // A badly encoded address names nothing.
  return broken.error instanceof URIError ? (
    <NotFound />
  ) : (
    <Broken why="It is the console's fault, not the service's." />
  );
}

/**
 * Returns a page for one whose files could not be loaded. After a deployment there are others: then the console is
 * reloaded, once.
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
  // Offline, a reload would show the browser's own error page.
  if (!navigator.onLine) return false;
  try {
    const before = Number(sessionStorage.getItem(KEY));
    sessionStorage.setItem(KEY, String(Date.now()));
    return Date.now() - before > ONCE_IN_MS;
  } catch {
    return false;
  }
}
