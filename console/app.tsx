import { ErrorBoundary, LocationProvider, Route, Router, lazy } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';
import { Board } from './board/board.tsx';
import { Layout } from './layout.tsx';
import { Login } from './login.tsx';
import { NotFound } from './not-found.tsx';
import { findSession, session } from './session.ts';

const Order = lazy(async () => (await import('./orders/order.tsx')).Order);
const Orders = lazy(async () => (await import('./orders/orders.tsx')).Orders);
const Delivery = lazy(async () => (await import('./deliveries/delivery.tsx')).Delivery);
const Deliveries = lazy(async () => (await import('./deliveries/deliveries.tsx')).Deliveries);
const Location = lazy(async () => (await import('./locations/location.tsx')).Location);
const Locations = lazy(async () => (await import('./locations/locations.tsx')).Locations);
const Traffic = lazy(async () => (await import('./traffic/traffic.tsx')).Traffic);

/** The login, or the page that the address names: a link that was shared leads there once its reader has logged in. */
export function App() {
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    findSession().catch((error: Error) => setProblem(error.message));
  }, []);
  if (session.value.state === 'unknown') {
    return problem === undefined ? null : <main class="alone">The console cannot be opened: {problem}</main>;
  }
  if (session.value.state === 'out') return <Login />;
  return (
    <LocationProvider scope="/console">
      <Layout>
        <ErrorBoundary onError={() => {}}>
          <Router>
            <Route path="/console" component={Board} />
            <Route path="/console/orders" component={Orders} />
            <Route path="/console/orders/:serviceOrderId" component={Order} />
            <Route path="/console/deliveries" component={Deliveries} />
            <Route path="/console/deliveries/:deliveryId" component={Delivery} />
            <Route path="/console/locations" component={Locations} />
            <Route path="/console/locations/:locationId" component={Location} />
            <Route path="/console/traffic" component={Traffic} />
            <Route default component={NotFound} />
          </Router>
        </ErrorBoundary>
      </Layout>
    </LocationProvider>
  );
}
