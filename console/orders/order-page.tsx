import { TEST_ORDER } from '../../src/core/domain/test-order-id.ts';
import { useRoute } from 'preact-iso';
import { useEffect, useRef } from 'preact/hooks';
import { Refused } from '../api.ts';
import { may } from '../may.ts';
import { announce } from '../parts/announce.ts';
import { Badge } from '../parts/badge.tsx';
import { CaseAndNotes } from '../parts/case.tsx';
import { CopyButton } from '../parts/copyable.tsx';
import { Loading } from '../parts/loading.tsx';
import { Page } from '../parts/page.tsx';
import { Reveal } from '../parts/reveal.tsx';
import { ShortId } from '../parts/short-id.tsx';
import { MEMBER_STATE_TONES, PLACEMENT_TONES, words } from '../parts/tones.ts';
import type { ShownOrder } from '../wire.ts';
import { isWrong } from './how-change-stands.ts';
import { locationOf, nameOf } from './location-of.ts';
import { OrderContents } from './order-contents.tsx';
import { OrderHead } from './order-head.tsx';
import { OrderStanding } from './order-standing.tsx';
import './orders.css';
import { Timeline } from './timeline.tsx';
import { useStory } from './use-story.ts';
import { isCaseClosed } from './what-to-do.ts';
import { WhatWasOrdered } from './what-was-ordered.tsx';

/** One order, live. */
export function OrderPage() {
  const serviceOrderId = useRoute().params['serviceOrderId'] ?? '';
  // The key makes each order a new page, with its member data hidden.
  return <Story key={serviceOrderId} serviceOrderId={serviceOrderId} />;
}

function Story({ serviceOrderId }: { serviceOrderId: string }) {
  const story = useStory(serviceOrderId);
  const { value, problem } = story;
  useNews(value);
  const isUnknown = value === undefined && problem instanceof Refused && problem.status === 404;

  return (
    <Page
      title={`Order ${value === undefined ? serviceOrderId : nameOf(value)}`}
      beside={
        value !== undefined && (
          <>
            <CopyButton
              text={serviceOrderId}
              label={`the order id ${serviceOrderId}`}
              shows={<ShortId id={serviceOrderId} />}
            />
            <States story={value} />
          </>
        )
      }
    >
      {isUnknown ? (
        <Unknown serviceOrderId={serviceOrderId} />
      ) : (
        <Loading loaded={story}>
          {(order) => (
            <div class="orders-one">
              <OrderStanding story={order} onDone={story.again} />
              <Timeline story={order} onReplayed={story.again} />
              <div class="orders-facts">
                <section class="sheet" aria-labelledby="orders-contents">
                  <h2 id="orders-contents">What was ordered</h2>
                  <Contents order={order} />
                </section>
                {!order.past && (
                  <CaseAndNotes
                    path={`/orders/${encodeURIComponent(serviceOrderId)}`}
                    care={order}
                    isNeeded={isWrong(order) && !isCaseClosed(order)}
                    mayAct={may('operator', locationOf(order))}
                    reload={story.again}
                  />
                )}
              </div>
              <OrderHead story={order} />
            </div>
          )}
        </Loading>
      )}
    </Page>
  );
}

function States({ story: { serviceOrderId, order, placement } }: { story: ShownOrder }) {
  const isTest = TEST_ORDER.test(serviceOrderId);
  return (
    <p class="row orders-states">
      {isTest && <Badge>Test order</Badge>}
      {order !== null && !isTest && (
        <span>
          <span class="faint">Member sees </span>
          <Badge tone={MEMBER_STATE_TONES[order.memberState]}>{words(order.memberState)}</Badge>
        </span>
      )}
      <span>
        <span class="faint">Placement </span>
        <Badge tone={PLACEMENT_TONES[placement.state]}>{words(placement.state)}</Badge>
      </span>
    </p>
  );
}

function Contents({ order }: { order: ShownOrder }) {
  if (order.past) return <p class="faint">It is a past order: it can be read, but not changed.</p>;
  if (order.order === null) return <p class="faint">Not readable yet.</p>;
  if (order.order.erasedAt !== null) return <p class="faint">Erased, together with the data of the member.</p>;
  return (
    <>
      {order.ordered && <WhatWasOrdered ordered={order.ordered} />}
      <Reveal what="member and notes" at={order.order.locationId}>
        {() => <OrderContents serviceOrderId={order.serviceOrderId} />}
      </Reveal>
    </>
  );
}

function Unknown({ serviceOrderId }: { serviceOrderId: string }) {
  return (
    <p>
      No order <code>{serviceOrderId}</code> was found. An order appears here when the platform signals it. Check the
      id. Or the order belongs to a restaurant that you may not see. Press Search at the top of the page, or see{' '}
      <a href="/console/orders">the list of orders</a>.
    </p>
  );
}

/** Announces the order's new state. */
function useNews(story: ShownOrder | undefined): void {
  const now = story && (story.order === null ? words(story.placement.state) : words(story.order.memberState));
  const before = useRef(now);
  useEffect(() => {
    if (now !== undefined && before.current !== undefined && now !== before.current)
      announce(`${story && nameOf(story)} is now ${now}.`);
    before.current = now;
  }, [now]);
}
