import { ask } from '../api.ts';
import { Fact } from '../parts/fact.tsx';
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
      <Fact name="Name">{member.name || null}</Fact>
      <Fact name="Phone">{member.phone ? <a href={`tel:${member.phone}`}>{member.phone}</a> : null}</Fact>
      <Fact name="Email">{member.email ? <a href={`mailto:${member.email}`}>{member.email}</a> : null}</Fact>
      <Fact name="Member id">{member.id || null}</Fact>
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
          <Fact name="Delivery instructions">{destination.instructions || null}</Fact>
          {destination.latitude !== undefined && destination.longitude !== undefined && (
            <Fact name="Position">{`${destination.latitude}, ${destination.longitude}`}</Fact>
          )}
        </>
      )}
      <Fact name="Placed">
        <Time at={placedAt} />
      </Fact>
      <Fact name="Requested for">{requestedAt ? <Time at={requestedAt} /> : null}</Fact>
    </dl>
  );
}
