import type { ComponentChildren } from 'preact';
import { useLocation } from 'preact-iso';
import { useCallback, useState } from 'preact/hooks';
import { Keys } from './keys.tsx';
import { Outage } from './outage.tsx';
import { announced } from './parts/announce.ts';
import { may, onlyConfigures } from './may.ts';
import { SearchDialog } from './search/search-dialog.tsx';
import { SignInAgainDialog } from './sign-in-again-dialog.tsx';
import { signInProblem } from './sign-in-elsewhere.ts';
import { logOut, session } from './sign-in.ts';
import type { NeededRole } from './wire.ts';
import { personName } from '../src/core/domain/describe-action.ts';

const PAGES: readonly { href: string; name: string; needs: NeededRole }[] = [
  { href: '/console', name: 'Board', needs: 'viewer' },
  { href: '/console/orders', name: 'Orders', needs: 'viewer' },
  { href: '/console/webhooks', name: 'Webhooks', needs: 'viewer' },
  { href: '/console/locations', name: 'Locations', needs: 'any' },
  { href: '/console/traffic', name: 'Traffic', needs: 'viewer' },
  { href: '/console/vendors', name: 'Vendors', needs: 'viewer' },
  { href: '/console/people', name: 'People', needs: 'any' },
  { href: '/console/audit', name: 'Audit', needs: 'admin' },
];

/** The frame around every page. `?wall=true` shows the page alone, for a screen on a wall. */
export function Layout({ children }: { children: ComponentChildren }) {
  const { path, query } = useLocation();
  const [isSearching, setSearching] = useState(false);
  const search = useCallback(() => setSearching(!onlyConfigures()), []);
  const [problem, setProblem] = useState(signInProblem);
  const leave = (): void =>
    void logOut().catch(({ message }: Error) => setProblem(`You are still signed in: ${message}`));
  const isHere = (href: string): boolean => path === href || (href !== '/console' && path.startsWith(`${href}/`));
  if (query['wall'] === 'true' && path === '/console' && !onlyConfigures()) {
    return (
      <main id="main" tabIndex={-1} class="wall">
        <Outage />
        {children}
        <Overlays />
      </main>
    );
  }
  return (
    <>
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <header class="top">
        <a class="brand" href="/console">
          <img src="/console/icon.svg" alt="" width="24" height="24" />
          The pass
        </a>
        <nav aria-label="Pages">
          {PAGES.filter(({ needs }) => may(needs, { anywhere: true })).map(({ href, name }) => (
            <a key={href} href={href} aria-current={isHere(href) ? 'page' : undefined}>
              {name}
            </a>
          ))}
        </nav>
        {!onlyConfigures() && (
          <button type="button" class="quiet search-button" onClick={search} title="Search: / or Ctrl K">
            Search …
          </button>
        )}
        <span class="problem" role="alert">
          {problem}
        </span>
        {session.value.state === 'in' && (
          <span class="who" title={`Signed in as ${personName(session.value.name)}`}>
            {personName(session.value.name)}
          </span>
        )}
        <button type="button" class="quiet" onClick={leave} title={versionOf()}>
          Sign out
        </button>
      </header>
      <main id="main" tabIndex={-1}>
        {!onlyConfigures() && <Outage />}
        {children}
      </main>
      <Overlays />
      <Keys onSearch={search} />
      {isSearching && <SearchDialog onClose={() => setSearching(false)} />}
    </>
  );
}

/** What every page may need: the dialog to sign in again, and the sentence for a screen reader. */
function Overlays() {
  return (
    <>
      <SignInAgainDialog />
      <output class="unseen" aria-live="polite">
        {announced.value}
      </output>
    </>
  );
}

function versionOf(): string {
  return session.value.state === 'in' ? `Expediter ${session.value.version}` : 'Expediter';
}
