import { useLocation } from 'preact-iso';
import type { ComponentChildren, ComponentType } from 'preact';
import { useErrorBoundary, useState } from 'preact/hooks';
import { NotFound } from './not-found.tsx';
import { Page } from './parts/page.tsx';

/** The storage key of the last automatic reload's time, so that a missing page is not reloaded repeatedly. */
const KEY = 'expediter.reloaded';
const ONCE_IN_MS = 60_000;

/** Shows an error in place of a page that failed to render. Other pages render normally. */
export function Unbroken({ children }: { children: ComponentChildren }) {
  const { url } = useLocation();
  const [broken, setBroken] = useState<{ url: string; error: unknown }>();
  useErrorBoundary((error: unknown) => {
    console.error(error);
    setBroken({ url, error });
  });
  if (broken?.url !== url) return children;
  // A badly encoded address matches no page.
  return broken.error instanceof URIError ? (
    <NotFound />
  ) : (
    <Broken why="The console has a bug. The service is not affected. Reload the page." />
  );
}

/**
 * Returns the page to show if the files of a page could not be loaded. After a deployment the files have other names, so
 * the console is reloaded once.
 */
export async function pageGone(): Promise<ComponentType> {
  if (mayReload()) {
    location.reload();
    await new Promise(() => {});
  }
  return () => <Broken why="The console was updated, or the service cannot be reached. Reload the page." />;
}

function Broken({ why }: { why: string }) {
  return (
    <Page title="This page cannot be shown">
      <p>{why}</p>
      <button type="button" class="primary" onClick={() => location.reload()}>
        Reload
      </button>
    </Page>
  );
}

function mayReload(): boolean {
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
