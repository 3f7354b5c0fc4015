import { useMemo } from 'preact/hooks';
import { labelOf } from '../../src/core/domain/label-of.ts';
import { scopeOf } from '../may.ts';
import { Choice, FieldGroup, Text, Tick } from '../parts/form.tsx';
import { offeredCountries, offeredZones } from '../parts/local-time.ts';
import { linesOf } from '../people/right-of.ts';
import { isFilled, NO_CONTACT, REASONS, type AboutDraft, type ContactDraft } from './about-draft.ts';
import type { FieldProblems } from './field-problems.ts';
import { session } from '../sign-in.ts';

/** The inputs about a location besides its POS. @param form.groups groups that exist */
export function AboutFields({
  draft,
  problems,
  groups,
  isNew = false,
  onChange,
}: {
  draft: AboutDraft;
  problems: FieldProblems;
  groups: readonly string[];
  /** A new location must have a name. An older one may have none. */
  isNew?: boolean;
  onChange: (draft: AboutDraft) => void;
}) {
  const zones = useMemo(offeredZones, []);
  const countries = useMemo(offeredCountries, []);
  const chosen = linesOf(draft.groups);
  const offered = (scopeOf('integrator')?.groups ?? groups).filter((group) => !chosen.includes(group));
  const shared = (name: Exclude<keyof AboutDraft, 'contacts'>) => ({
    label: labelOf(name),
    refused: problems[name],
    value: draft[name],
    onWrite: (text: string) => onChange({ ...draft, [name]: text }),
  });
  /** A field whose values may also be typed by their names, which are the words before a comma. */
  const offering = (name: 'country' | 'timeZone', offers: ReturnType<typeof offeredZones>) => ({
    ...shared(name),
    offers,
    onDone(text: string) {
      const typed = text.trim().toLowerCase();
      const [value] = offers.find(([, about]) => about.split(',')[0]?.toLowerCase() === typed) ?? [];
      if (value !== undefined) shared(name).onWrite(value);
    },
  });
  return (
    <>
      <Text
        id="about-name"
        hint="Everybody sees it."
        placeholder="Trattoria Nord"
        isRequired={isNew}
        {...shared('name')}
      />
      <div class="field-row">
        <Text
          id="about-country"
          hint="For telephone numbers. Type its name."
          placeholder="DE"
          {...offering('country', countries)}
        />
        <Text
          id="about-zone"
          hint="Type a city, then choose."
          placeholder="Europe/Berlin"
          {...offering('timeZone', zones)}
        />
      </div>
      <Text id="about-address" maxLength={300} {...shared('address')} />
      <Text
        id="about-back-office"
        hint="The https address where colleagues open it."
        inputMode="url"
        maxLength={2_000}
        {...shared('backOfficeUrl')}
      />
      <Text
        id="about-groups"
        hint="One per line, such as its brand and its region. Roles and lists can be limited to a group."
        lines={2}
        maxLength={6_000}
        {...shared('groups')}
        beside={offered.slice(0, 12).map((group) => (
          <button
            key={group}
            type="button"
            aria-label={`Add the group ${group}`}
            onClick={() => onChange({ ...draft, groups: [...chosen, group].join('\n') })}
          >
            + {group}
          </button>
        ))}
      />
      <FieldGroup id="about-contacts" label={labelOf('contacts')} refused={problems['contacts']}>
        {draft.contacts.map((contact, nth) => (
          <Contact
            // oxlint-disable-next-line react/no-array-index-key -- two contacts may have the same texts
            key={nth}
            nth={nth}
            contact={contact}
            refusedOf={(name) => problems[`contacts.${draft.contacts.filter(isFilled).indexOf(contact)}${name}`]}
            onChange={(...now) => onChange({ ...draft, contacts: draft.contacts.toSpliced(nth, 1, ...now) })}
          />
        ))}
        <button type="button" onClick={() => onChange({ ...draft, contacts: [...draft.contacts, NO_CONTACT] })}>
          Add a contact
        </button>
      </FieldGroup>
    </>
  );
}

const VIA = Object.entries({ '': 'no', email: 'by e-mail', webhook: 'by your gateway' });
const LANGUAGES = Object.entries({ en: 'English', de: 'German', fr: 'French', es: 'Spanish' });

/** Says that nothing is sent by a way. */
function inVain(via: string): string | undefined {
  if (via === '' || session.value.state !== 'in' || session.value.notifies?.includes(via) !== false) return undefined;
  return `Nothing is sent this way: this service has no ${via === 'email' ? 'mail server' : 'gateway'}. Ask the person who runs it.`;
}

/** A contact, and whether and when it is told about orders: docs/notify-restaurants.md. */
function Contact({
  nth,
  contact,
  refusedOf,
  onChange,
}: {
  nth: number;
  contact: ContactDraft;
  /** What the service said about one of its fields, or about it. */
  refusedOf: (name: string) => string | undefined;
  /** With the contact as it is now, or with nothing to remove it. */
  onChange: (...now: ContactDraft[]) => void;
}) {
  const id = `contact-${nth + 1}`;
  const { about } = contact;
  const shared = (field: Exclude<keyof ContactDraft, 'about'>, label = labelOf(field), path = `.${field}`) => ({
    id: `${id}-${field}`,
    label,
    refused: refusedOf(path),
    value: contact[field],
    onWrite: (text: string) => onChange({ ...contact, [field]: text }),
  });
  const choice = (field: 'via' | 'language') => {
    const { onWrite: onChoose, ...others } = shared(field);
    return { ...others, onChoose };
  };
  return (
    <FieldGroup id={id} label={`Contact ${nth + 1}`} refused={refusedOf('')}>
      <div class="field-row">
        <Text {...shared('name', 'Name of the contact')} />
        <Text {...shared('email')} />
        <Text {...shared('phone')} placeholder="+4930123456" />
      </div>
      <div class="field-row">
        <Choice {...choice('via')} options={VIA} hint={inVain(contact.via)} />
        {contact.via !== '' && (
          <>
            <Choice {...choice('language')} options={LANGUAGES} />
            <Text {...shared('afterMinutes')} type="number" />
            <Text {...shared('quietFrom', 'Quiet from', '.quiet.from')} type="time" />
            <Text {...shared('quietTo', 'Quiet until', '.quiet.to')} type="time" />
          </>
        )}
      </div>
      {contact.via !== '' && (
        <FieldGroup id={`${id}-about`} label="About" refused={refusedOf('.about')}>
          {(Object.keys(REASONS) as (keyof typeof REASONS)[]).map((reason) => (
            <Tick
              key={reason}
              isOn={about.includes(reason)}
              onTick={(isOn) =>
                onChange({ ...contact, about: isOn ? [...about, reason] : about.filter((each) => each !== reason) })
              }
            >
              {REASONS[reason]}
            </Tick>
          ))}
        </FieldGroup>
      )}
      <button type="button" onClick={() => onChange()}>
        Remove contact {nth + 1}
      </button>
    </FieldGroup>
  );
}
