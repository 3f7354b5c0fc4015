import type { ComponentType } from 'preact';
import { LocationProvider, Route, Router, lazy } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';
import { Board } from './board/board.tsx';
import { Unbroken, pageGone } from './broken.tsx';
import { Layout } from './layout.tsx';
import { Login } from './login.tsx';
import { NotFound } from './not-found.tsx';
import { findSession, session } from './sign-in.ts';

const Order = page(async () => (await import('./orders/order.tsx')).Order);
const Orders = page(async () => (await import('./orders/orders.tsx')).Orders);
const Webhook = page(async () => (await import('./webhooks/webhook.tsx')).Webhook);
const Webhooks = page(async () => (await import('./webhooks/webhooks.tsx')).Webhooks);
const Location = page(async () => (await import('./locations/location.tsx')).Location);
const Locations = page(async () => (await import('./locations/locations.tsx')).Locations);
const Traffic = page(async () => (await import('./traffic/traffic.tsx')).Traffic);

/** A page that is loaded on its first visit. */
function page(load: () => Promise<ComponentType>): ComponentType {
  return lazy(() => load().catch(pageGone));
}

/** The login, or the page of the address: a shared link leads there after the login. */
export function App() {
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
            <p>The console cannot be opened: {problem}</p>
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
            <Route path="/console" component={Board} />
            <Route path="/console/orders" component={Orders} />
            <Route path="/console/orders/:serviceOrderId" component={Order} />
            <Route path="/console/webhooks" component={Webhooks} />
            <Route path="/console/webhooks/:webhookId" component={Webhook} />
            <Route path="/console/locations" component={Locations} />
            <Route path="/console/locations/:locationId" component={Location} />
            <Route path="/console/traffic" component={Traffic} />
            <Route default component={NotFound} />
          </Router>
        </Unbroken>
      </Layout>
    </LocationProvider>
  );
}
