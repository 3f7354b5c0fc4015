import { useLocation } from 'preact-iso';
import { useEffect, useRef, useState } from 'preact/hooks';
import { AskButton } from '../parts/ask-button.tsx';
import { Refused, ask, query } from '../api.ts';
import { may, onlyConfigures } from '../may.ts';
import { announce } from '../parts/announce.ts';
import { Badge } from '../parts/badge.tsx';
import { ContactLine } from '../locations/contact-line.tsx';
import { knownGroups } from '../parts/group-choice.tsx';
import { Confirm } from '../parts/confirm.tsx';
import { Choice, Form } from '../parts/form.tsx';
import { Fact } from '../parts/fact.tsx';
import { Loading } from '../parts/loading.tsx';
import { locationName, readNames, vendorName } from '../parts/names.ts';
import { useFilters } from '../parts/use-filters.ts';
import { useLoaded } from '../parts/use-loaded.ts';
import { WithRole } from '../parts/with-role.tsx';
import type { ChangedLocation, ListedOrders, ShownLocation, ShownProvider } from '../wire.ts';
import { aboutIds } from './about-draft.ts';
import { AboutFields } from './about-fields.tsx';
import { Changes, Warnings } from './changes.tsx';
import { withoutChanged } from './field-problems.ts';
import { Problem } from '../parts/said.tsx';
import { countryOf, valueInWords } from '../../src/core/domain/describe-change.ts';
import { labelOf } from '../../src/core/domain/label-of.ts';
import { editOf, moveEdit, patchOf, type Edit } from './location-edit.ts';
import './set-up.css';
import { draftOf, fieldsOf, hiddenInWords, idsOf, type Field } from './settings-fields.ts';
import { SettingsForm } from './settings-form.tsx';
import { useProblems } from './use-problems.ts';

/** What operators have set for a location, and the form that changes it. */
export function Configuration({ location, onDone }: { location: ShownLocation; onDone: () => void }) {
  const { locationId, open } = location;
  // In the address, so that a link opens the form at a field.
  const [{ edit }, go] = useFilters('edit', 'added');
  const isEdited = edit !== '' && may('integrator', locationId);
  const [isRemoved, setRemoved] = useState(false);
  /** The warnings of a change that is saved. */
  const [saved, setSaved] = useState<readonly string[]>();
  const button = useRef<HTMLButtonElement>(null);
  const wasEdited = useRef(false);
  // The form was closed, so the button that opened it gets the focus back.
  useEffect(() => {
    if (isEdited) setSaved(undefined);
    else if (wasEdited.current) button.current?.focus();
    wasEdited.current = isEdited;
  }, [isEdited]);
  return (
    <section class="sheet" aria-labelledby="location-configuration">
      <div class="page-head">
        <h2 id="location-configuration">Configuration</h2>
        {!isEdited && (
          <WithRole needs="integrator" at={locationId} to="To change it">
            <div class="buttons">
              <button ref={button} type="button" onClick={() => go({ edit: 'about-name' }, 'typed')}>
                Edit …
              </button>
              <AskButton onClick={() => setRemoved(true)}>Remove</AskButton>
            </div>
          </WithRole>
        )}
      </div>
      {location.settingsProblem !== null && (
        <div class="problem">
          Orders cannot be sent with these settings. <Problem text={location.settingsProblem} />
        </div>
      )}
      {isEdited ? (
        <EditForm
          location={location}
          first={edit}
          onDone={onDone}
          onSaved={setSaved}
          onClose={() => go({ edit: '' }, 'typed')}
        />
      ) : (
        <>
          {saved !== undefined && (
            <p>
              <Badge tone="good">saved</Badge> {(open?.held > 0 || open?.failing) && 'Waiting orders are tried again. '}
              {open?.dropped > 0 && !onlyConfigures(locationId) && (
                <a href={`/console/webhooks${query({ location: locationId, outcome: 'dropped' })}`}>
                  Replay the dropped webhooks
                </a>
              )}
            </p>
          )}
          <Warnings warnings={saved ?? []} />
          <Facts location={location} />
        </>
      )}
      {isRemoved && <Remove location={location} onClose={() => setRemoved(false)} />}
    </section>
  );
}

function Facts({ location }: { location: ShownLocation }) {
  const { integration, groups, contacts, settings } = location;
  return (
    <dl class="configuration">
      <Fact name="Name">{location.name ?? <None />}</Fact>
      <Fact name="Groups">
        {groups.length === 0 && <None />}
        {groups.map((group, nth) => (
          <span key={group}>
            {nth > 0 && ', '}
            <a href={`/console/locations${query({ group })}`}>{group}</a>
          </span>
        ))}
      </Fact>
      <Fact name="Country, time zone">
        {[countryOf(location.country), location.timeZone].filter(Boolean).join(', ') || <None />}
      </Fact>
      <Fact name="Address">{location.address ?? <None />}</Fact>
      <Fact name="Contacts">
        {contacts.length === 0 && <None />}
        {contacts.map((contact) => (
          <div key={JSON.stringify(contact)}>
            <ContactLine contact={contact} />
          </div>
        ))}
      </Fact>
      <Fact name={labelOf('integration')}>{vendorName(integration)}</Fact>
      <Fact name={labelOf('backOfficeUrl')}>{location.backOfficeUrl ?? <None />}</Fact>
      {Object.entries(settings).map(([setting, shown]) => (
        <Setting key={setting} name={setting} shown={shown} />
      ))}
    </dl>
  );
}

function None() {
  return <span class="faint">none</span>;
}

function Setting({ name, shown }: { name: string; shown: ShownLocation['settings'][string] }) {
  return (
    <>
      <dt title={name}>{labelOf(name)}</dt>
      <dd>
        {'value' in shown ? (
          <span class="mono">
            {typeof shown.value === 'string' ? shown.value : valueInWords(JSON.stringify(shown.value))}
          </span>
        ) : (
          <span title="The fingerprint changes only if the value does.">{hiddenInWords(shown)}</span>
        )}
      </dd>
    </>
  );
}

function EditForm(about: {
  location: ShownLocation;
  first: string;
  onDone: () => void;
  onSaved: (warnings: readonly string[]) => void;
  onClose: () => void;
}) {
  const loaded = useLoaded((signal) => ask<{ providers: ShownProvider[] }>('GET', '/providers', { signal }), []);
  return (
    <Loading loaded={loaded}>
      {({ providers }) => <LoadedForm {...about} providers={providers} groups={knownGroups()} />}
    </Loading>
  );
}

/**
 * The settings that a problem names, where the problem is shown. Shows nothing if it names none.
 * @param about.said the problem, with the names of settings
 */
export function FixSettings({ locationId, said, onSaved }: { locationId: string; said: string; onSaved: () => void }) {
  const path = `/locations/${encodeURIComponent(locationId)}`;
  /** The orders that were held when it was saved. */
  const [tried, setTried] = useState<ListedOrders['orders']>();
  const [warnings, setWarnings] = useState<readonly string[]>([]);
  // The field stays while somebody writes in it, and its result is seen, whatever the problem becomes.
  const [named] = useState(() => said.split(/\W+/));
  const section = useRef<HTMLElement>(null);
  const mayFix = may('integrator', locationId);
  const { value, again } = useLoaded(
    (signal) =>
      Promise.all([
        ask<ShownLocation>('GET', path, { signal }),
        ask<{ providers: ShownProvider[] }>('GET', '/providers', { signal }),
      ]),
    [path],
  );
  const isSaved = tried !== undefined;
  const orders = useLoaded(
    async (signal) => {
      const filter = isSaved ? { state: 'sent', since: tried.at(-1)?.signalledAt } : { state: 'held' };
      if (!mayFix || onlyConfigures(locationId) || tried?.length === 0) return [];
      const page = { location: locationId, ...filter, limit: 100 };
      return (await ask<ListedOrders>('GET', `/orders${query(page)}`, { signal })).orders;
    },
    [path, isSaved],
    isSaved ? SENT_EVERY_MS : undefined,
  );
  if (value === undefined) return null;
  const [location, { providers }] = value;
  const only = fieldsFor(providers, location).filter(({ id }) => named.includes(id));
  if (only.length === 0) return null;
  const shared = { location, providers, groups: [], only, onDone: again, onClose: () => {} };
  const saved = (unusual: readonly string[]): void => {
    setWarnings(unusual);
    setTried(tried ?? orders.value ?? []);
    // The pressed button goes.
    section.current?.focus({ preventScroll: true });
    onSaved();
  };
  const phone = location.contacts.find((contact) => contact.phone !== undefined)?.phone;
  const sent = orders.value?.filter(({ serviceOrderId }) =>
    tried?.some((each) => each.serviceOrderId === serviceOrderId),
  );
  return (
    <section ref={section} tabIndex={-1} aria-label={`Settings of ${locationName(locationId)}`}>
      {phone !== undefined && (
        <p>
          Ask for the right value: <a href={`tel:${phone}`}>Call {phone}</a>
        </p>
      )}
      {isSaved && (
        <p aria-live="polite">
          <Badge tone="good">saved</Badge> {sentInWords(sent?.length ?? 0, tried.length)}
        </p>
      )}
      <Warnings warnings={warnings} />
      <WithRole needs="integrator" at={locationId} to="To correct it">
        <LoadedForm key={location.etag} {...shared} onSaved={saved} />
      </WithRole>
    </section>
  );
}

/** How often it is read which of the tried orders were sent. */
const SENT_EVERY_MS = 2_000;

function sentInWords(sent: number, tried: number): string {
  if (tried === 0 || sent === 0) return 'Waiting orders are tried again.';
  if (sent < tried) return `Waiting orders are tried again. ${sent} of ${tried} were sent.`;
  return tried === 1 ? '1 order was sent.' : `${tried} orders were sent.`;
}

type Editing = {
  location: ShownLocation;
  providers: readonly ShownProvider[];
  /** The only fields of the settings that are shown. Only an unusual change of them has a preview. */
  only?: readonly Field[];
  /** What the id of the field begins with that gets the focus. */
  first?: string;
  onDone: () => void;
  onSaved: (warnings: readonly string[]) => void;
  onClose: () => void;
};

function LoadedForm({ groups, ...editing }: Editing & { groups: readonly string[] }) {
  const { providers, only, first, onClose } = editing;
  const { base, edit, problems, isSamePos, ...now } = useEditing(editing);
  const { setEdit, setProblems } = now;
  // A refusal may name secrets that must be given again.
  const asked = Object.values(problems).join(' ').split(/\W+/);
  const fields = now.fields.filter(
    ({ id, isSecret }) =>
      only?.some((each) => each.id === id) !== false || (isSecret && (asked.includes(id) || edit.settings[id])),
  );
  const form = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const inputs = form.current?.querySelectorAll<HTMLElement>('input, select, textarea') ?? [];
    if (first !== undefined) [...inputs].find(({ id }) => id.startsWith(first))?.focus();
  }, [first]);
  return (
    <div ref={form} class="set-up">
      <Form
        action={only === undefined ? 'Preview and save …' : 'Save'}
        back={
          only === undefined && (
            <button type="button" onClick={onClose}>
              Cancel
            </button>
          )
        }
        onLeave={now.judge}
        onSubmit={now.preview}
      >
        {only === undefined && (
          <>
            <AboutFields
              draft={edit.about}
              problems={problems}
              groups={groups}
              onChange={(about) => {
                setProblems(withoutChanged(problems, edit.about, about));
                setEdit({ ...edit, about });
              }}
            />
            <ChoosePos edit={edit} base={base} providers={providers} onChange={setEdit} />
          </>
        )}
        <SettingsForm
          key={`${edit.integration} ${base.etag}`}
          fields={fields}
          draft={edit.settings}
          problems={problems}
          fingerprints={isSamePos ? fingerprintsOf(base) : {}}
          onChange={(settings) => {
            setProblems(withoutChanged(problems, edit.settings, settings, 'settings.'));
            setEdit({ ...edit, settings });
          }}
        />
        <div role="alert">
          {now.isOld && (
            <div class="problem set-up-old">
              <p>Somebody changed this location meanwhile. Nothing of yours was saved. Reload it: your inputs stay.</p>
              <button type="button" onClick={() => void now.reload()}>
                Reload
              </button>
            </div>
          )}
          <p class="problem">{now.message}</p>
        </div>
      </Form>
      {now.would !== undefined && (
        <Confirm title="Save these changes?" action="Save" onConfirm={now.save} onClose={() => now.setWould(undefined)}>
          <Changes changes={now.would.changes} />
          <Warnings warnings={now.would.warnings} />
          {!isSamePos && now.would.validTokens === 0 && <p>The location has no valid token. Make one afterwards.</p>}
        </Confirm>
      )}
    </div>
  );
}

type AboutChoosePos = {
  edit: Edit;
  base: ShownLocation;
  providers: readonly ShownProvider[];
  onChange: (edit: Edit) => void;
};

/** Chooses the POS. Another POS begins with empty settings. */
function ChoosePos({ edit, base, providers, onChange }: AboutChoosePos) {
  return (
    <Choice
      id="edit-integration"
      label={labelOf('integration')}
      hint={
        edit.integration !== base.integration && (
          <>
            <b>All settings are replaced.</b> The tokens of the former POS stop working: make a new one afterwards.
          </>
        )
      }
      value={edit.integration}
      options={providers.map(({ integration }) => [integration, vendorName(integration)] as const)}
      onChoose={(integration) =>
        onChange({
          ...edit,
          integration,
          settings:
            integration === base.integration
              ? editOf(base, fieldsFor(providers, base)).settings
              : draftOf(fieldsFor(providers, { integration, settings: {} }), {}),
        })
      }
    />
  );
}

/** What is edited of a location, and how it is sent. */
function useEditing({ location, providers, only, first, onDone, onSaved, onClose }: Editing) {
  // The page loads the location again and again, but the form stays with the version that it was opened for.
  const [base, setBase] = useState(location);
  const [edit, setEdit] = useState<Edit>(() => editOf(location, fieldsFor(providers, location), first));
  const [message, setMessage] = useState<string>();
  const [isOld, setOld] = useState(false);
  const [would, setWould] = useState<ChangedLocation>();
  const isSamePos = edit.integration === base.integration;
  const fields = fieldsFor(providers, isSamePos ? base : { integration: edit.integration, settings: {} });
  const path = `/locations/${encodeURIComponent(base.locationId)}`;
  const { patch, problems: wrong } = patchOf(edit, base, fields);
  const isChanged = Object.keys(patch).length > 0;

  const send = async (dryRun: boolean): Promise<ChangedLocation> =>
    ask<ChangedLocation>('PATCH', path + query({ dryRun: dryRun || undefined }), {
      body: patch,
      headers: { 'if-match': base.etag },
    });

  const { problems, setProblems, check, judge } = useProblems(edit, {
    wrong,
    ids: only === undefined ? [...aboutIds(edit.about), ...idsOf(fields)] : idsOf(only),
    send: async () => (isChanged ? send(true) : undefined),
  });

  const preview = async (): Promise<unknown> => {
    setMessage(undefined);
    try {
      const { found, answer } = await check();
      if (Object.keys(found).length > 0) return false;
      if (!isChanged) throw new Error('Nothing has changed.');
      const isUnusual = Object.values(patch['settings'] ?? {}).includes(null) || answer?.warnings.length !== 0;
      if (only === undefined || isUnusual) return setWould(answer);
      return await save();
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 412) throw error;
      return setOld(true);
    }
  };

  const save = async (): Promise<void> => {
    let warnings: readonly string[];
    try {
      ({ warnings } = await send(false));
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 412) throw error;
      setOld(true);
      return;
    }
    void readNames().catch(() => {});
    announce(`${locationName(base.locationId)} is changed`);
    onSaved(warnings);
    onDone();
    onClose();
  };

  /** Loads what somebody else stored meanwhile. What was typed here stays. */
  const reload = async (): Promise<void> => {
    setMessage(undefined);
    try {
      const now = await ask<ShownLocation>('GET', path);
      setEdit(moveEdit(edit, editOf(base, fieldsFor(providers, base)), editOf(now, fieldsFor(providers, now))));
      setBase(now);
      setOld(false);
      // To load it again would make a new form of `only`, without what was typed.
      if (only === undefined || now.integration !== base.integration) onDone();
      announce('The form has what is stored now, and what you typed');
    } catch (error) {
      setMessage((error as Error).message);
    }
  };

  const shown = { base, edit, problems, message, isOld, would, fields, isSamePos };
  return { ...shown, setEdit, setProblems, setWould, judge, preview, save, reload };
}

function fieldsFor(
  providers: readonly ShownProvider[],
  { integration, settings }: Pick<ShownLocation, 'integration' | 'settings'>,
) {
  const provider = providers.find((each) => each.integration === integration);
  return provider === undefined ? [] : fieldsOf(provider.settings, settings);
}

function fingerprintsOf({ settings }: ShownLocation): Record<string, string> {
  return Object.fromEntries(
    Object.entries(settings).flatMap(([name, shown]) => {
      return 'fingerprint' in shown ? [[name, hiddenInWords(shown)]] : [];
    }),
  );
}

/** Says first whether the location can be removed, and why not. */
function Remove({ location, onClose }: { location: ShownLocation; onClose: () => void }) {
  const { locationId, etag } = location;
  // The name is gone after it was removed.
  const [name] = useState(locationName(locationId));
  const { route } = useLocation();
  const path = `/locations/${encodeURIComponent(locationId)}`;
  const headers = { 'if-match': etag };
  const tried = useLoaded(
    (signal) => ask<{ tokens: number }>('DELETE', `${path}?dryRun=true`, { signal, headers }),
    [etag],
  );
  const remove = async (): Promise<void> => {
    await ask('DELETE', path, { headers });
    announce(`${name} is removed`);
    void readNames().catch(() => {});
    route('/console/locations');
  };
  return (
    <Confirm
      title={`Remove ${name}?`}
      action="Remove the location"
      isDangerous
      isReady={tried.value !== undefined}
      onConfirm={remove}
      onClose={onClose}
    >
      {tried.problem === undefined ? (
        <p>
          Its settings, its {tried.value?.tokens ?? ''} tokens and the roles that name it are removed. Its orders and
          webhooks stay stored. Webhooks that still come are refused. This cannot be undone.
        </p>
      ) : (
        <p class="problem">It cannot be removed now: {tried.problem.message}.</p>
      )}
    </Confirm>
  );
}
