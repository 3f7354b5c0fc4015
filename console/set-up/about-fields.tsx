import { scopeOf } from '../may.ts';
import { linesOf } from '../people/right-of.ts';
import { NO_CONTACT, REASONS, type AboutDraft, type ContactDraft } from './about-draft.ts';
import type { FieldProblems } from './field-problems.ts';
import { FormField } from './form-field.tsx';

const TIME_ZONES = Intl.supportedValuesOf('timeZone');

/** The inputs about a location besides its POS. @param form.groups groups that exist */
export function AboutFields({
  draft,
  problems,
  groups,
  onChange,
}: {
  draft: AboutDraft;
  problems: FieldProblems;
  groups: readonly string[];
  onChange: (draft: AboutDraft) => void;
}) {
  const put = (field: keyof AboutDraft) => (event: { currentTarget: { value: string } }) =>
    onChange({ ...draft, [field]: event.currentTarget.value });
  return (
    <>
      <FormField id="about-name" label="Name" problem={problems['name']} hint="For people.">
        {(attributes) => (
          <input
            {...attributes}
            value={draft.name}
            maxLength={200}
            autocomplete="off"
            placeholder="Trattoria Nord"
            onInput={put('name')}
          />
        )}
      </FormField>
      <div class="form-pair">
        <FormField
          id="about-country"
          label="Country"
          problem={problems['country']}
          hint="Two letters. For telephone numbers without a country code."
        >
          {(attributes) => (
            <input
              {...attributes}
              value={draft.country}
              maxLength={2}
              size={4}
              placeholder="DE"
              autocomplete="off"
              onInput={put('country')}
            />
          )}
        </FormField>
        <FormField id="about-zone" label="Time zone" problem={problems['timeZone']}>
          {(attributes) => (
            <>
              <input
                {...attributes}
                list="about-zones"
                value={draft.timeZone}
                placeholder="Europe/Berlin"
                autocomplete="off"
                spellcheck={false}
                onInput={put('timeZone')}
              />
              <datalist id="about-zones">
                {TIME_ZONES.map((zone) => (
                  <option key={zone}>{zone}</option>
                ))}
              </datalist>
            </>
          )}
        </FormField>
      </div>
      <FormField id="about-address" label="Address" problem={problems['address']}>
        {(attributes) => (
          <input {...attributes} value={draft.address} maxLength={200} autocomplete="off" onInput={put('address')} />
        )}
      </FormField>
      <FormField
        id="about-back-office"
        label="Back office of the POS"
        problem={problems['backOfficeUrl']}
        hint="The https address where colleagues open it."
      >
        {(attributes) => (
          <input
            {...attributes}
            value={draft.backOfficeUrl}
            inputMode="url"
            maxLength={2_000}
            autocomplete="off"
            spellcheck={false}
            onInput={put('backOfficeUrl')}
          />
        )}
      </FormField>
      <GroupsField draft={draft} problem={problems['groups']} groups={groups} onChange={onChange} />
      <Contacts
        contacts={draft.contacts}
        problem={problems['contacts']}
        onChange={(contacts) => onChange({ ...draft, contacts })}
      />
    </>
  );
}

function GroupsField({
  draft,
  problem,
  groups,
  onChange,
}: {
  draft: AboutDraft;
  problem: string | undefined;
  groups: readonly string[];
  onChange: (draft: AboutDraft) => void;
}) {
  const own = scopeOf('integrator');
  const chosen = linesOf(draft.groups);
  const offered = (own?.groups ?? groups).filter((group) => !chosen.includes(group));
  return (
    <FormField
      id="about-groups"
      label="Groups"
      problem={problem}
      isRequired={own !== null && draft.groups === ''}
      hint="One per line, such as its brand and its region. Roles and lists can be limited to a group."
    >
      {(attributes) => (
        <>
          <textarea
            {...attributes}
            rows={2}
            spellcheck={false}
            value={draft.groups}
            onInput={({ currentTarget }) => onChange({ ...draft, groups: currentTarget.value })}
          />
          {offered.length > 0 && (
            <div class="form-offers">
              {offered.slice(0, 12).map((group) => (
                <button
                  key={group}
                  type="button"
                  aria-label={`Add the group ${group}`}
                  onClick={() => onChange({ ...draft, groups: [...chosen, group].join('\n') })}
                >
                  + {group}
                </button>
              ))}
            </div>
          )}
        </>
      )}
    </FormField>
  );
}

const CONTACT = [
  ['name', 'Name'],
  ['email', 'E-mail'],
  ['phone', 'Phone, with country code'],
] as const;

function Contacts({
  contacts,
  problem,
  onChange,
}: {
  contacts: readonly ContactDraft[];
  problem: string | undefined;
  onChange: (contacts: readonly ContactDraft[]) => void;
}) {
  return (
    <fieldset class="form-group">
      <legend>Contacts at the restaurant</legend>
      {contacts.map((contact, nth) => {
        const put = (change: Partial<ContactDraft>): void => onChange(contacts.with(nth, { ...contact, ...change }));
        return (
          // oxlint-disable-next-line react/no-array-index-key -- two contacts may have the same texts
          <div key={nth}>
            <div class="form-row">
              {CONTACT.map(([field, label]) => (
                <input
                  key={field}
                  aria-label={`Contact ${nth + 1}: ${label}`}
                  placeholder={label}
                  value={contact[field]}
                  autocomplete="off"
                  onInput={(event) => put({ [field]: event.currentTarget.value })}
                />
              ))}
              <button
                type="button"
                class="quiet"
                aria-label={`Remove contact ${nth + 1}`}
                onClick={() => onChange(contacts.toSpliced(nth, 1))}
              >
                ✕
              </button>
            </div>
            <Told contact={contact} nth={nth} put={put} />
          </div>
        );
      })}
      {problem !== undefined && <p class="problem">{problem}</p>}
      <button type="button" onClick={() => onChange([...contacts, NO_CONTACT])}>
        Add a contact
      </button>
    </fieldset>
  );
}

const VIA = [
  ['', 'Is not told about orders'],
  ['email', 'Is told by e-mail'],
  ['webhook', 'Is told by your gateway'],
] as const;
const LANGUAGES = [
  ['en', 'In English'],
  ['de', 'In German'],
  ['fr', 'In French'],
  ['es', 'In Spanish'],
] as const;

/** Whether and when a contact is told about orders: docs/notify-restaurants.md. */
function Told({
  contact,
  nth,
  put,
}: {
  contact: ContactDraft;
  nth: number;
  put: (change: Partial<ContactDraft>) => void;
}) {
  const select = (field: 'via' | 'language', options: typeof VIA | typeof LANGUAGES, label: string) => (
    <select
      aria-label={`Contact ${nth + 1}: ${label}`}
      value={contact[field]}
      onChange={(event) => put({ [field]: event.currentTarget.value })}
    >
      {options.map(([value, name]) => (
        <option key={value} value={value}>
          {name}
        </option>
      ))}
    </select>
  );
  const input = (field: 'afterMinutes' | 'quietFrom' | 'quietTo', type: 'number' | 'time', label: string) => (
    <label>
      {label}{' '}
      <input
        type={type}
        min={type === 'number' ? 0 : undefined}
        max={type === 'number' ? 120 : undefined}
        aria-label={`Contact ${nth + 1}: ${label}`}
        value={contact[field]}
        onInput={(event) => put({ [field]: event.currentTarget.value })}
      />
    </label>
  );
  return (
    <div class="form-row">
      {select('via', VIA, 'told about orders')}
      {contact.via !== '' && (
        <>
          {select('language', LANGUAGES, 'language')}
          {input('afterMinutes', 'number', 'after minutes')}
          {input('quietFrom', 'time', 'quiet hours from')}
          {input('quietTo', 'time', 'quiet hours to')}
          {(Object.keys(REASONS) as (keyof typeof REASONS)[]).map((reason) => (
            <label key={reason}>
              <input
                type="checkbox"
                aria-label={`Contact ${nth + 1}: is told about ${REASONS[reason]}`}
                checked={contact.about.includes(reason)}
                onChange={({ currentTarget: { checked } }) =>
                  put({ about: checked ? [...contact.about, reason] : contact.about.filter((each) => each !== reason) })
                }
              />{' '}
              {REASONS[reason]}
            </label>
          ))}
        </>
      )}
    </div>
  );
}
