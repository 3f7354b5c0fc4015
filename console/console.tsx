import type { ComponentType } from 'preact';
import { LocationProvider, Route, Router, lazy } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';
import { BoardPage } from './board/board-page.tsx';
import { Unbroken, pageGone } from './broken.tsx';
import { Layout } from './layout.tsx';
import { Login } from './login.tsx';
import { onlyConfigures } from './may.ts';
import { NotFound } from './not-found.tsx';
import './parts/keep-names.ts';
import { findSession, session } from './sign-in.ts';

const OrderPage = page(async () => (await import('./orders/order-page.tsx')).OrderPage);
const OrdersPage = page(async () => (await import('./orders/orders-page.tsx')).OrdersPage);
const WebhookPage = page(async () => (await import('./webhooks/webhook-page.tsx')).WebhookPage);
const WebhooksPage = page(async () => (await import('./webhooks/webhooks-page.tsx')).WebhooksPage);
const LocationPage = page(async () => (await import('./locations/location-page.tsx')).LocationPage);
const LocationsPage = page(async () => (await import('./locations/locations-page.tsx')).LocationsPage);
const NewLocationPage = page(async () => (await import('./set-up/new-location-page.tsx')).NewLocationPage);
const TrafficPage = page(async () => (await import('./traffic/traffic-page.tsx')).TrafficPage);
const VendorsPage = page(async () => (await import('./vendors/vendors-page.tsx')).VendorsPage);
const PeoplePage = page(async () => (await import('./people/people-page.tsx')).PeoplePage);
const AllowCommand = page(async () => (await import('./allow-command.tsx')).AllowCommand);
const AuditPage = page(async () => (await import('./audit/audit-page.tsx')).AuditPage);

/** A page that is loaded on its first visit. */
function page(load: () => Promise<ComponentType>): ComponentType {
  return lazy(() => load().catch(pageGone));
}

/** The login, or the page of the address. A shared link works after the login. */
export function Console() {
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    findSession().catch((error: Error) => setProblem(error.message));
  }, []);
  if (session.value.state === 'unknown') {
    return (
      <main class="alone">
        {problem === undefined ? (
          <p class="faint slow">Loading …</p>
        ) : (
          <div>
            <p>The console could not be opened: {problem}</p>
            <button type="button" onClick={() => location.reload()}>
              Try again
            </button>
          </div>
        )}
      </main>
    );
  }
  if (session.value.state === 'out') return <Login />;
  return (
    <LocationProvider scope="/console">
      <Layout>
        <Unbroken>
          <Router>
            <Route path="/console" component={onlyConfigures() ? LocationsPage : BoardPage} />
            <Route path="/console/orders" component={OrdersPage} />
            <Route path="/console/orders/:serviceOrderId" component={OrderPage} />
            <Route path="/console/webhooks" component={WebhooksPage} />
            <Route path="/console/webhooks/:webhookId" component={WebhookPage} />
            <Route path="/console/locations" component={LocationsPage} />
            <Route path="/console/locations/new" component={NewLocationPage} />
            <Route path="/console/locations/:locationId" component={LocationPage} />
            <Route path="/console/traffic" component={TrafficPage} />
            <Route path="/console/vendors" component={VendorsPage} />
            <Route path="/console/people" component={PeoplePage} />
            <Route path="/console/audit" component={AuditPage} />
            <Route path="/console/login" component={AllowCommand} />
            <Route default component={NotFound} />
          </Router>
        </Unbroken>
      </Layout>
    </LocationProvider>
  );
}
