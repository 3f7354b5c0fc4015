import type { ShownLocation } from '../wire.ts';

/** A contact, whose telephone a phone can call. */
export function ContactLine({ contact }: { contact: ShownLocation['contacts'][number] }) {
  const { name, phone, email, via, afterMinutes = 0, quiet, about } = contact;
  const after = afterMinutes === 0 ? '' : ` after ${afterMinutes} min`;
  const not = quiet === undefined ? '' : `, not ${quiet.from}–${quiet.to}`;
  return (
    <>
      {name} {phone !== undefined && <a href={`tel:${phone}`}>{phone}</a>}{' '}
      {email !== undefined && <a href={`mailto:${email}`}>{email}</a>}
      {via !== undefined && (
        <span class="faint">
          {' '}
          is told about orders by {via === 'email' ? 'e-mail' : 'your gateway'}
          {after}
          {not}
          {about !== undefined && ` (only: ${about.join(', ').replaceAll('_', ' ')})`}
        </span>
      )}
    </>
  );
}
