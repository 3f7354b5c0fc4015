import { printable } from '../../src/observe/terminal-text.ts';
import { query } from '../api.ts';
import { now } from '../parts/clock.ts';
import { Copyable } from '../parts/copyable.tsx';
import { Dated } from '../parts/dated.tsx';
import { duration } from '../parts/duration.ts';
import { Fact } from '../parts/fact.tsx';
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
        <Fact name="Location">
          {locationId === null ? (
            <span class="faint">not known before the order is fetched</span>
          ) : (
            <LocationLink id={locationId} />
          )}
        </Fact>
        <Fact name="POS">
          {order?.integration ? vendorName(order.integration) : <span class="faint">not sent yet</span>}
        </Fact>
        <Fact name="Fulfilment">{order?.fulfillment ?? <span class="faint">not known yet</span>}</Fact>
        <Fact name="POS id">
          {posIds.length > 0 ? (
            posIds.map(({ providerOrderId }) => (
              <div key={providerOrderId} class="mono">
                {printable(providerOrderId)}
              </div>
            ))
          ) : (
            <span class="faint">{printable(order?.providerOrderId ?? 'not reported yet')}</span>
          )}
        </Fact>
        <Fact name="Status">
          <Status story={story} />
        </Fact>
        <Fact name="Member">
          {story.notified}
          {story.memberWatching && <strong> The member is watching.</strong>}
        </Fact>
        <Fact name="Requested for">
          <Promised story={story} />
        </Fact>
        <Fact name="POS estimate">{order && estimateOf(order)}</Fact>
        <Fact name={isAgain(placement.signalledAt, story) ? 'Started again' : 'Started'}>
          <Time at={placement.signalledAt} />, <Ago at={placement.signalledAt} />
        </Fact>
        <Fact name="Ended">
          {order?.endedAt ? (
            <>
              <Time at={order.endedAt} />, after{' '}
              {duration(Date.parse(order.endedAt) - Date.parse(placement.signalledAt))}
            </>
          ) : null}
        </Fact>
        <Fact name="Tried until">{placement.nextAttemptAt !== null && <Time at={placement.deadlineAt} />}</Fact>
      </dl>
      <details class="orders-machinery">
        <summary>Trace id, link and counts</summary>
        <dl>
          <dt>Status in the API</dt>
          <dd>{order?.status ?? 'none'}</dd>
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
        words(order.memberState)
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

function estimateOf({ estimatedReadyAt: ready, estimatedDeliveryAt: delivery }: NonNullable<ShownOrder['order']>) {
  if (ready === null && delivery === null) return null;
  return (
    <>
      <div>
        <Dated before="ready at" at={ready} />
      </div>
      <div>
        <Dated before="delivery at" at={delivery} />
      </div>
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
