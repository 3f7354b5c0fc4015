import type { ShownLocation } from '../wire.ts';

/** A contact, whose telephone a phone can call. */
export function ContactLine({ contact: { name, phone, email } }: { contact: ShownLocation['contacts'][number] }) {
  return (
    <>
      {name} {phone !== undefined && <a href={`tel:${phone}`}>{phone}</a>}{' '}
      {email !== undefined && <a href={`mailto:${email}`}>{email}</a>}
    </>
  );
}
