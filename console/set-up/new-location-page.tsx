import { useLocation } from 'preact-iso';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Refused, ask } from '../api.ts';
import { may, scopeOf } from '../may.ts';
import { announce } from '../parts/announce.ts';
import { groupsOf } from '../parts/group-choice.tsx';
import { Loading } from '../parts/loading.tsx';
import { Page } from '../parts/page.tsx';
import { pageOf } from '../parts/page-of.ts';
import { useFilters } from '../parts/use-filters.ts';
import { useLoaded } from '../parts/use-loaded.ts';
import { findSession } from '../sign-in.ts';
import type { ChangedLocation, ListedLocation, ListedLocations, ShownProvider } from '../wire.ts';
import { ABOUT_IDS, readAbout } from './about-draft.ts';
import { AboutFields } from './about-fields.tsx';
import { Changes, Warnings } from './changes.tsx';
import { problemsOf, withoutChanged, type FieldProblems } from './field-problems.ts';
import { FormField } from './form-field.tsx';
import { forgetNewLocation, newLocation, type NewLocation } from './new-location.ts';
import './set-up.css';
import { draftOf, fieldsOf, idsOf, readDraft } from './settings-fields.ts';
import type { Field, Schema, SettingsDraft } from './settings-fields.ts';
import { SettingsForm } from './settings-form.tsx';
import { Steps } from './steps.tsx';

/** Adds a location: its POS, its settings, and a preview before it is stored. Its page then connects it. */
export function NewLocationPage() {
  const loaded = useLoaded(async (signal) => {
    const [{ providers }, { locations }] = await Promise.all([
      ask<{ providers: ShownProvider[] }>('GET', '/providers', { signal }),
      ask<ListedLocations>('GET', '/locations', { signal }),
    ]);
    return { providers, locations };
  }, []);
  const canAdd = may('integrator', { anywhere: true });
  return (
    <Page title="Add a location">
      {canAdd ? (
        <Loading loaded={loaded}>{(known) => <Wizard {...known} />}</Loading>
      ) : (
        <p>To add a location, you need the role integrator.</p>
      )}
    </Page>
  );
}

type Would = ChangedLocation & { of: NewLocation };

function Wizard({
  providers,
  locations,
}: {
  providers: readonly ShownProvider[];
  locations: readonly ListedLocation[];
}) {
  const draft = newLocation.value;
  const { route } = useLocation();
  const [{ step }, go] = useFilters('step');
  const [problems, setProblems] = useState<FieldProblems>({});
  const [message, setMessage] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const [would, setWould] = useState<Would>();
  const provider = providers.find(({ integration }) => integration === draft.integration);
  const fields = provider === undefined ? [] : fieldsOf(provider.settings);
  const settings = draft.settings[draft.integration] ?? draftOf(fields, {});
  const isFilled = provider !== undefined && draft.locationId !== '';
  const now = stepOf(step, isFilled, would?.of === draft);
  const { form, heading, markRefused } = useFocus(now);

  const put = (some: Partial<NewLocation>): void => {
    const next = { ...draft, ...some };
    setProblems(withoutChanged(withoutChanged(problems, draft, next), draft.about, next.about));
    setMessage(undefined);
    newLocation.value = next;
  };
  const show = (found: FieldProblems, others: readonly string[] = []): void => {
    setProblems(found);
    markRefused();
    const count = Object.keys(found).length;
    const some = count === 0 ? [] : [`Correct ${count === 1 ? 'the marked field' : `${count} fields`}.`];
    setMessage([...others, ...some].join(' ') || undefined);
  };
  const path = `/locations/${encodeURIComponent(draft.locationId)}`;

  const toSettings = (): void => {
    const found = problemsOfFirst(draft, locations);
    show(found);
    if (Object.keys(found).length === 0) go({ step: '2' });
  };

  const review = async (): Promise<void> => {
    const read = readDraft(fields, settings);
    const wrong = Object.entries(read.problems).map(([id, problem]) => [`settings.${id}`, problem]);
    show(Object.fromEntries(wrong) as FieldProblems);
    if (wrong.length > 0) return;
    const body = bodyOf(draft, read.settings);
    setBusy(true);
    try {
      setWould({ ...(await ask<ChangedLocation>('PUT', `${path}?dryRun=true`, { body })), of: draft });
      go({ step: '3' });
    } catch (error) {
      const issues = error instanceof Refused ? error.issues : [];
      const { byField, others } = problemsOf(issues, ['locationId', ...ABOUT_IDS, ...idsOf(fields)]);
      show(byField, issues.length === 0 ? [(error as Error).message] : others);
      const isOfSettings = Object.keys(byField).some((id) => id.startsWith('settings'));
      if (Object.keys(byField).length > 0 && !isOfSettings) go({ step: '' });
    }
    setBusy(false);
  };

  const save = async (): Promise<void> => {
    const body = bodyOf(draft, readDraft(fields, settings).settings);
    setBusy(true);
    try {
      // What was reviewed is what is stored: a new location, or the one that was there.
      const headers = typeof would?.etag === 'string' ? { 'if-match': would.etag } : { 'if-none-match': '*' };
      await ask<ChangedLocation>('PUT', path, { body, headers });
      await untilAllowed(draft.locationId);
      announce(`${draft.locationId} is stored`);
      route(`${pageOf.location(draft.locationId)}?added=1`);
      forgetNewLocation();
    } catch (error) {
      show({}, [(error as Error).message]);
      setBusy(false);
    }
  };

  const submit = (event: Event): void => {
    event.preventDefault();
    if (isBusy) return;
    if (now === 1) toSettings();
    else void (now === 2 ? review() : save());
  };

  return (
    <form ref={form} class="set-up" noValidate onSubmit={submit}>
      <Steps now={now} />
      <div class="sheet">
        <h2 ref={heading} tabIndex={-1}>
          {now === 1 ? 'Which restaurant, and which POS?' : now === 2 ? `Settings for ${nameOf(draft)}` : 'Save it'}
        </h2>
        {now === 1 && <First draft={draft} problems={problems} providers={providers} locations={locations} put={put} />}
        {now === 2 && (
          <Second
            integration={draft.integration}
            fields={fields}
            settings={settings}
            problems={problems}
            onChange={(next) => {
              put({ settings: { ...draft.settings, [draft.integration]: next } });
              setProblems(withoutChanged(problems, settings, next, 'settings.'));
            }}
          />
        )}
        {now === 3 && would !== undefined && <Review would={would} />}
        <p class="problem" role="alert">
          {message}
        </p>
        <StepButtons
          now={now}
          isBusy={isBusy}
          canSave={would?.created !== false}
          onBack={() => go({ step: now === 3 ? '2' : '' })}
        />
      </div>
    </form>
  );
}

/** A step is only shown if the steps before it are filled in, for example after the page was reloaded. */
function stepOf(step: string, isFilled: boolean, isReviewed: boolean): 1 | 2 | 3 {
  if (step === '3' && isFilled && isReviewed) return 3;
  return (step === '2' || step === '3') && isFilled ? 2 : 1;
}

/** The heading gets the focus when the step changes, and the first wrong field when a step is refused. */
function useFocus(now: 1 | 2 | 3) {
  const form = useRef<HTMLFormElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const shown = useRef(now);
  useEffect(() => {
    if (shown.current !== now) heading.current?.focus();
    shown.current = now;
  }, [now]);
  // Only a refused step moves the focus: a problem also disappears while its input is typed in.
  const [tries, setTries] = useState(0);
  useEffect(() => form.current?.querySelector<HTMLElement>('[data-wrong], [aria-invalid]')?.focus(), [tries]);
  return { form, heading, markRefused: () => setTries(tries + 1) };
}

/** The body of a request that stores the location. */
function bodyOf({ integration, about }: NewLocation, settings: object): object {
  return { integration, settings, ...readAbout(about) };
}

/** What is missing or wrong in the first step. */
function problemsOfFirst(draft: NewLocation, locations: readonly ListedLocation[]): FieldProblems {
  return {
    ...(draft.integration === '' && { integration: 'Choose a POS.' }),
    ...(draft.locationId === '' && { locationId: 'The id is missing. It is the one of the ordering platform.' }),
    ...(exists(locations, draft.locationId) && { locationId: 'A location with this id exists already.' }),
  };
}

function Second({
  integration,
  fields,
  settings,
  problems,
  onChange,
}: {
  integration: string;
  fields: readonly Field[];
  settings: SettingsDraft;
  problems: FieldProblems;
  onChange: (settings: SettingsDraft) => void;
}) {
  return (
    <>
      <p class="faint">Secrets are stored encrypted, and are never shown again.</p>
      <SettingsForm key={integration} fields={fields} draft={settings} problems={problems} onChange={onChange} />
    </>
  );
}

function StepButtons({
  now,
  isBusy,
  canSave,
  onBack,
}: {
  now: 1 | 2 | 3;
  isBusy: boolean;
  canSave: boolean;
  onBack: () => void;
}) {
  return (
    <div class="buttons set-up-buttons">
      {now > 1 && (
        <button type="button" onClick={onBack}>
          Back
        </button>
      )}
      {(now < 3 || canSave) && (
        <button type="submit" class="primary" aria-disabled={isBusy}>
          {now === 1 ? 'Next: settings' : now === 2 ? (isBusy ? 'One moment …' : 'Next: review and save') : 'Save'}
        </button>
      )}
    </div>
  );
}

function First({
  draft,
  problems,
  providers,
  locations,
  put,
}: {
  draft: NewLocation;
  problems: FieldProblems;
  providers: readonly ShownProvider[];
  locations: readonly ListedLocation[];
  put: (some: Partial<NewLocation>) => void;
}) {
  const wrong = problems['integration'];
  const own = scopeOf('integrator');
  // Who may add locations only in one group gets this group at once.
  useEffect(() => {
    const [only, ...others] = own?.groups ?? [];
    if (only !== undefined && others.length === 0 && draft.about.groups === '')
      put({ about: { ...draft.about, groups: only } });
  }, []);
  return (
    <>
      <fieldset class="set-up-cards" aria-describedby={wrong && 'new-pos-problem'}>
        <legend>POS</legend>
        {providers.map((provider) => {
          const { title = provider.integration, description }: Schema = provider.settings;
          return (
            <label key={provider.integration} class="set-up-card">
              <input
                type="radio"
                name="integration"
                value={provider.integration}
                data-wrong={wrong === undefined ? undefined : ''}
                checked={draft.integration === provider.integration}
                onChange={() => put({ integration: provider.integration })}
              />
              <span>
                <b>{title}</b> <code class="faint">{provider.integration}</code>
                {description !== undefined && <span class="faint">{description}</span>}
                <span class="faint">
                  {provider.connect ? 'Registers its webhook by itself.' : 'Its webhook is set by hand.'}
                </span>
              </span>
            </label>
          );
        })}
      </fieldset>
      {wrong !== undefined && (
        <p class="problem" id="new-pos-problem">
          {wrong}
        </p>
      )}
      <FormField
        id="new-id"
        label="Id"
        isRequired
        problem={problems['locationId']}
        hint={
          exists(locations, draft.locationId) ? (
            <>
              This location exists. <a href={pageOf.location(draft.locationId)}>Open it</a> to change it.
            </>
          ) : (
            "The location's id on the ordering platform. It cannot be changed later."
          )
        }
      >
        {(attributes) => (
          <input
            {...attributes}
            class="mono"
            value={draft.locationId}
            maxLength={255}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            onInput={(event) => put({ locationId: event.currentTarget.value.trim() })}
          />
        )}
      </FormField>
      <AboutFields
        draft={draft.about}
        problems={problems}
        groups={groupsOf(locations)}
        onChange={(about) => put({ about })}
      />
    </>
  );
}

function Review({ would: { created, locationId, changes, warnings } }: { would: Would }) {
  if (!created) {
    return (
      <p class="problem">
        A location with the id {locationId} exists already, so nothing is saved.{' '}
        <a href={pageOf.location(locationId)}>Open it</a> to change it, or go back and enter another id.
      </p>
    );
  }
  return (
    <>
      <p>
        The settings fit. This will be stored for <b>{locationId}</b>. Orders that wait for it are sent at once.
      </p>
      <Changes changes={changes} isNew />
      <Warnings warnings={warnings} />
    </>
  );
}

function nameOf({ about, locationId }: NewLocation): string {
  return about.name.trim() || locationId;
}

function exists(locations: readonly ListedLocation[], id: string): boolean {
  return locations.some(({ locationId }) => locationId === id);
}

const AGAIN_MS = 500;
const ALLOWED_WITHIN_MS = 6_000;

/** Waits until the session has the operator's roles at a new location, which may come from its group. */
async function untilAllowed(locationId: string): Promise<void> {
  const until = performance.now() + ALLOWED_WITHIN_MS;
  for (;;) {
    await findSession();
    if (may('integrator', locationId) || performance.now() > until) return;
    await new Promise((later) => setTimeout(later, AGAIN_MS));
  }
}
