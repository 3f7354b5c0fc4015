import { ask } from '../api.ts';
import { Loading } from '../parts/loading.tsx';
import { Time } from '../parts/time.tsx';
import { useLoaded } from '../parts/use-loaded.ts';
import type { CanonicalOrder, ShownOrder } from '../wire.ts';
import { showMoney } from './show-money.ts';

/** The order as it was fetched: member data. Reading it is logged. */
export function OrderContents({ serviceOrderId }: { serviceOrderId: string }) {
  const loaded = useLoaded(
    (signal) =>
      ask<ShownOrder>('GET', `/orders/${encodeURIComponent(serviceOrderId)}?contents=true`, { signal }).then(
        // They are stored in the canonical shape.
        ({ contents }) => (contents ?? null) as CanonicalOrder | null,
      ),
    [serviceOrderId],
  );
  return (
    <Loading loaded={loaded}>
      {(order) => (order === null ? <p class="faint">It was erased meanwhile.</p> : <Contents order={order} />)}
    </Loading>
  );
}

type Item = CanonicalOrder['items'][number];

function Contents({ order }: { order: CanonicalOrder }) {
  const { items, notes, money } = order;
  const price = (minorUnits: number): string => showMoney(minorUnits, money.currency);
  return (
    <div class="orders-contents">
      <h3>Items</h3>
      <ul class="orders-items">
        {items.map((item, i) => (
          <li key={i}>
            <ItemLine item={item} price={price} />
            {item.ageRestricted && <p class="orders-age">Age to be checked</p>}
            {item.notes !== undefined && <p class="orders-note">{item.notes}</p>}
            {item.modifiers.length > 0 && (
              <ul>
                {item.modifiers.map((modifier, j) => (
                  <li key={j}>
                    <ItemLine item={modifier} price={price} />
                  </li>
                ))}
              </ul>
            )}
          </li>
        ))}
      </ul>
      {notes !== undefined && <p class="orders-note">{notes}</p>}
      <h3>Money</h3>
      <dl class="orders-money">
        {(['subtotal', 'tax', 'fee', 'tip', 'total'] as const).map((part) => (
          <Fact key={part} name={part} value={price(money[part])} />
        ))}
      </dl>
      <h3>Member</h3>
      <Who order={order} />
    </div>
  );
}

/** One line, or one of its modifiers. */
function ItemLine({
  item: { quantity, name, unitPrice },
  price,
}: {
  item: Pick<Item, 'quantity' | 'name' | 'unitPrice'>;
  price: (minorUnits: number) => string;
}) {
  return (
    <p class="orders-item">
      <b>{quantity} ×</b> <span>{name}</span>
      {unitPrice !== undefined && (
        <span class="faint">
          {price(unitPrice)}
          {quantity > 1 && ' each'}
        </span>
      )}
    </p>
  );
}

function Who({ order: { member, fulfillment, placedAt } }: { order: CanonicalOrder }) {
  const { destination, requestedAt } = fulfillment;
  const place = destination && [destination.postalCode, destination.city].filter(Boolean).join(' ');
  return (
    <dl>
      <Fact name="Name" value={member.name} />
      <Fact name="Phone" value={member.phone} />
      <Fact name="Email" value={member.email} />
      <Fact name="Member id" value={member.id} />
      {destination !== undefined && (
        <>
          <dt>Address</dt>
          <dd>
            {[destination.line1, destination.line2, place, destination.region, destination.country]
              .filter((line) => line !== undefined && line !== '')
              .map((line) => (
                <div key={line}>{line}</div>
              ))}
          </dd>
          <Fact name="At the door" value={destination.instructions} />
          {destination.latitude !== undefined && destination.longitude !== undefined && (
            <Fact name="Position" value={`${destination.latitude}, ${destination.longitude}`} />
          )}
        </>
      )}
      <dt>Placed</dt>
      <dd>
        <Time at={placedAt} />
      </dd>
      {requestedAt !== undefined && (
        <>
          <dt>Promised for</dt>
          <dd>
            <Time at={requestedAt} />
          </dd>
        </>
      )}
    </dl>
  );
}

function Fact({ name, value }: { name: string; value: string | undefined }) {
  if (value === undefined || value === '') return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}
