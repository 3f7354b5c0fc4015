import { ask } from '../api.ts';
import { Loading } from '../parts/loading.tsx';
import { pathInWords } from '../../src/core/domain/path-in-words.ts';
import { Time } from '../parts/time.tsx';
import { words } from '../parts/tones.ts';
import { useLoaded } from '../parts/use-loaded.ts';
import type { CanonicalOrder, ShownOrder } from '../wire.ts';

type Changes = NonNullable<ShownOrder['changesInFull']>[number]['changes'];

/** Reads member data: the member, the notes, reasons written by the POS. The audit records who reads it. */
function useContents(serviceOrderId: string) {
  return useLoaded(
    (signal) =>
      ask<ShownOrder>('GET', `/orders/${encodeURIComponent(serviceOrderId)}?contents=true`, { signal }).then(
        ({ contents, changesInFull, history, order }) => ({
          order: (contents ?? null) as CanonicalOrder | null,
          changes: changesInFull?.at(-1)?.changes ?? [],
          trackingUrl: order?.trackingUrl ?? undefined,
          reasons: history.flatMap(({ reason, status }) => (reason === null ? [] : [`${words(status)}: “${reason}”`])),
        }),
      ),
    [serviceOrderId],
  );
}

/** The reasons that the POS wrote. They may have member data. */
export function PosWords({ serviceOrderId }: { serviceOrderId: string }) {
  return (
    <Loading loaded={useContents(serviceOrderId)}>
      {({ reasons }) => <Reasons reasons={reasons.length > 0 ? reasons : ['There is none, or it was erased.']} />}
    </Loading>
  );
}

function Reasons({ reasons }: { reasons: readonly string[] }) {
  return (
    <>
      {[...new Set(reasons)].map((reason) => (
        <p key={reason} class="orders-note">
          {reason}
        </p>
      ))}
    </>
  );
}

/** The order as it was fetched, and later changes at the platform. */
export function OrderContents({ serviceOrderId }: { serviceOrderId: string }) {
  const loaded = useContents(serviceOrderId);
  return (
    <Loading loaded={loaded}>
      {({ order, changes, reasons, trackingUrl }) =>
        order === null ? (
          <p class="faint">The data was erased in the meantime.</p>
        ) : (
          <Contents order={order} changes={changes} reasons={reasons} trackingUrl={trackingUrl} />
        )
      }
    </Loading>
  );
}

function inFull(value: unknown): string {
  if (value === undefined || value === null) return 'none';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

type Shown = { order: CanonicalOrder; changes: Changes; reasons: string[]; trackingUrl: string | undefined };

function Contents({ order, changes, reasons, trackingUrl }: Shown) {
  const notes = [
    ...(order.notes === undefined ? [] : [order.notes]),
    ...(order.cancelReason === undefined ? [] : [`Cancelled: ${order.cancelReason}`]),
    ...order.items.flatMap(({ name, notes }) => (notes === undefined ? [] : [`${name}: ${notes}`])),
  ];
  return (
    <div class="orders-contents">
      {notes.length > 0 && <h3>Notes</h3>}
      {notes.map((note, nth) => (
        <p key={nth} class="orders-note">
          {note}
        </p>
      ))}
      {reasons.length > 0 && <h3>Reasons</h3>}
      <Reasons reasons={reasons} />
      {changes.length > 0 && <h3>Changed at the platform</h3>}
      {changes.map(({ path, was, is }) => (
        <p key={path} class="orders-note">
          {pathInWords(path)}: {inFull(was)} → {inFull(is)}
        </p>
      ))}
      {trackingUrl !== undefined && (
        <p>
          <a href={trackingUrl} target="_blank" rel="noreferrer">
            Track the courier
          </a>
        </p>
      )}
      <h3>Member</h3>
      <Who order={order} />
    </div>
  );
}

function Who({ order: { member, fulfillment, placedAt } }: { order: CanonicalOrder }) {
  const { destination, requestedAt } = fulfillment;
  const place = destination && [destination.postalCode, destination.city].filter(Boolean).join(' ');
  return (
    <dl>
      <Fact name="Name" value={member.name} />
      <Fact name="Phone" value={member.phone} opens="tel:" />
      <Fact name="Email" value={member.email} opens="mailto:" />
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
          <Fact name="Delivery instructions" value={destination.instructions} />
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
          <dt>Requested for</dt>
          <dd>
            <Time at={requestedAt} />
          </dd>
        </>
      )}
    </dl>
  );
}

/** @param about.opens the scheme of its link */
function Fact({ name, value, opens }: { name: string; value: string | undefined; opens?: 'tel:' | 'mailto:' }) {
  if (value === undefined || value === '') return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>{opens === undefined ? value : <a href={`${opens}${value}`}>{value}</a>}</dd>
    </>
  );
}
