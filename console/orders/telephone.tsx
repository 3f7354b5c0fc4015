import { ask } from '../api.ts';
import { Contacts } from '../locations/contact-line.tsx';
import { useLoaded } from '../parts/use-loaded.ts';
import type { ShownLocation } from '../wire.ts';

/** Whom to call at the restaurant, and its page at the POS. */
export function Telephone({ locationId }: { locationId: string }) {
  const path = `/locations/${encodeURIComponent(locationId)}`;
  const { value, problem } = useLoaded((signal) => ask<ShownLocation>('GET', path, { signal }), [path]);
  if (value === undefined) return problem === undefined ? null : <p class="faint">{problem.message}</p>;
  const { address, backOfficeUrl } = value;
  return (
    <div class="orders-call">
      <Contacts {...value} />
      {address !== null && <div>{address}</div>}
      {backOfficeUrl !== null && (
        <a href={backOfficeUrl} target="_blank" rel="noreferrer">
          Open its POS
        </a>
      )}
    </div>
  );
}
