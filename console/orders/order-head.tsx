import { printable } from '../../src/observe/terminal-text.ts';
import { query } from '../api.ts';
import { now } from '../parts/clock.ts';
import { Copyable } from '../parts/copyable.tsx';
import { duration } from '../parts/duration.ts';
import { Ago, Time } from '../parts/time.tsx';
import { words } from '../parts/tones.ts';
import type { ShownOrder } from '../wire.ts';
import { LocationLink } from '../parts/location-field.tsx';
import { locationName, vendorName } from '../parts/names.ts';
import { pageOf } from '../parts/page-of.ts';
import { isAgain } from './describe-happening.ts';
import { locationOf } from './location-of.ts';

/** The order at a glance. */
export function OrderHead({ story }: { story: ShownOrder }) {
  const { serviceOrderId, traceId, placement, order, posIds } = story;
  const locationId = locationOf(story);
  return (
    <section class="sheet" aria-labelledby="orders-head">
      <h2 id="orders-head">The order</h2>
      <dl>
        <dt>Location</dt>
        <dd>
          {locationId === null ? (
            <span class="faint">not known before the order is fetched</span>
          ) : (
            <LocationLink id={locationId} />
          )}
        </dd>
        <dt>POS</dt>
        <dd>{order?.integration ? vendorName(order.integration) : <span class="faint">not sent yet</span>}</dd>
        <dt>Fulfilment</dt>
        <dd>{order?.fulfillment ?? <span class="faint">not known yet</span>}</dd>
        <dt>POS id</dt>
        <dd>
          {posIds.length > 0 ? (
            posIds.map(({ providerOrderId }) => (
              <div key={providerOrderId} class="mono">
                {printable(providerOrderId)}
              </div>
            ))
          ) : (
            <span class="faint">{printable(order?.providerOrderId ?? 'not reported yet')}</span>
          )}
        </dd>
        <dt>Status</dt>
        <dd>
          <Status story={story} />
        </dd>
        <dt>Member</dt>
        <dd>
          {story.notified}
          {story.memberWatching && <strong> The member is watching.</strong>}
        </dd>
        <dt>Requested for</dt>
        <dd>
          <Promised story={story} />
        </dd>
        {order !== null && <Estimated {...order} />}
        <dt>{isAgain(placement.signalledAt, story) ? 'Started again' : 'Signalled'}</dt>
        <dd>
          <Time at={placement.signalledAt} />, <Ago at={placement.signalledAt} />
        </dd>
        {order !== null && order.endedAt !== null && (
          <>
            <dt>Ended</dt>
            <dd>
              <Time at={order.endedAt} />, after{' '}
              {duration(Date.parse(order.endedAt) - Date.parse(placement.signalledAt))}
            </dd>
          </>
        )}
        {placement.finishedAt === null && (
          <>
            <dt>To be at the POS by</dt>
            <dd>
              <Time at={placement.deadlineAt} />
            </dd>
          </>
        )}
      </dl>
      <details class="orders-machinery">
        <summary>Trace id, link and counts</summary>
        <dl>
          <dt>Live messages</dt>
          <dd>{order?.sequence ?? 0}</dd>
          <dt>Calls to the POS</dt>
          <dd>
            {placement.attempts}
            {placement.failures > 0 && <span class="faint"> ({placement.failures} failed since the last success)</span>}
          </dd>
        </dl>
        <h3>Link to this page</h3>
        <Copyable label="the link to this page" text={location.origin + pageOf.order(serviceOrderId)} />
        <h3>Trace id</h3>
        <Copyable label="the trace id" text={traceId} />
      </details>
    </section>
  );
}

/** The last status that the POS reported, with a warning if webhooks were dropped since. */
function Status({ story }: { story: ShownOrder }) {
  const { order, droppedSince } = story;
  const locationId = locationOf(story);
  return (
    <>
      {order?.status ? (
        words(order.status)
      ) : (
        <span class="faint">
          {droppedSince === 0 ? 'the POS has reported nothing yet' : 'the POS has reported nothing usable'}
        </span>
      )}
      {droppedSince > 0 && locationId !== null && (
        <p class="orders-dropped">
          <a href={`/console/webhooks${query({ outcome: 'dropped', location: locationId })}`}>
            {droppedSince === 1 ? 'One webhook' : `${droppedSince} webhooks`} of {locationName(locationId)}
          </a>{' '}
          {droppedSince === 1 ? 'was' : 'were'} dropped since. They may be about this order.
        </p>
      )}
    </>
  );
}

function Estimated({ estimatedReadyAt: ready, estimatedDeliveryAt: delivery }: NonNullable<ShownOrder['order']>) {
  if (ready === null && delivery === null) return null;
  return (
    <>
      <dt>POS estimate</dt>
      <dd>
        {ready !== null && (
          <div>
            ready at <Time at={ready} />
          </div>
        )}
        {delivery !== null && (
          <div>
            delivery at <Time at={delivery} />
          </div>
        )}
      </dd>
    </>
  );
}

function Promised({ story: { order } }: { story: ShownOrder }) {
  if (order === null) return <span class="faint">not known yet</span>;
  if (order.requestedAt === null) return <>as soon as possible</>;
  const ms = Date.parse(order.requestedAt) - (order.endedAt === null ? now.value : Date.parse(order.endedAt));
  return (
    <>
      <Time at={order.requestedAt} />
      {order.endedAt === null ? (ms < 0 ? `, ${duration(ms)} ago` : `, in ${duration(ms)}`) : ''}
    </>
  );
}
