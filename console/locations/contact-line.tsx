import { editPage } from '../../src/core/domain/remedy.ts';
import { locationName } from '../parts/names.ts';
import { WithRole } from '../parts/with-role.tsx';
import { REASONS } from '../set-up/about-draft.ts';
import type { ShownLocation } from '../wire.ts';

type AboutContact = { contact: ShownLocation['contacts'][number]; isCall?: boolean };

/** A contact, whose telephone a phone can call. @param about.isCall true to leave out how it is told about orders */
export function ContactLine({ contact, isCall = false }: AboutContact) {
  const { name, phone, email, via, afterMinutes = 0, quiet, about } = contact;
  const after = afterMinutes === 0 ? '' : ` after ${afterMinutes} min`;
  const not = quiet === undefined ? '' : `, not ${quiet.from}–${quiet.to}`;
  return (
    <>
      {name} {phone !== undefined && <a href={`tel:${phone}`}>{phone}</a>}{' '}
      {email !== undefined && <a href={`mailto:${email}`}>{email}</a>}
      {via !== undefined && !isCall && (
        <span class="faint">
          {' '}
          is told about orders by {via === 'email' ? 'e-mail' : 'your gateway'}
          {after}
          {not}
          {about !== undefined && ` (only: ${about.map((each) => REASONS[each]).join(', ')})`}
        </span>
      )}
    </>
  );
}

/** Whom to call at the restaurant, or that no number is stored. */
export function Contacts({ locationId, contacts }: Pick<ShownLocation, 'locationId' | 'contacts'>) {
  return (
    <>
      {contacts.map((contact) => (
        <div key={JSON.stringify(contact)}>
          <ContactLine contact={contact} isCall />
        </div>
      ))}
      {!contacts.some(({ phone }) => phone !== undefined) && (
        <div class="faint">
          No telephone number is stored for {locationName(locationId)}.{' '}
          <WithRole needs="integrator" at={locationId} to="To enter one">
            <a href={editPage(locationId, 'contact-1-phone')}>Enter it</a>
          </WithRole>
        </div>
      )}
    </>
  );
}
