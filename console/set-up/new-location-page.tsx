import { useLocation } from 'preact-iso';
import { useEffect, useRef, useState } from 'preact/hooks';
import { labelOf } from '../../src/core/domain/label-of.ts';
import { ask } from '../api.ts';
import { may, scopeOf } from '../may.ts';
import { announce } from '../parts/announce.ts';
import { FieldGroup, Form, Text, Tick } from '../parts/form.tsx';
import { knownGroups } from '../parts/group-choice.tsx';
import { Loading } from '../parts/loading.tsx';
import { knownLocations, readNames } from '../parts/names.ts';
import { Page } from '../parts/page.tsx';
import { pageOf } from '../parts/page-of.ts';
import { useFilters } from '../parts/use-filters.ts';
import { useLoaded } from '../parts/use-loaded.ts';
import { WithRole } from '../parts/with-role.tsx';
import { findSession } from '../sign-in.ts';
import type { ChangedLocation, IssuedToken, ShownProvider } from '../wire.ts';
import { aboutIds, readAbout } from './about-draft.ts';
import { AboutFields } from './about-fields.tsx';
import { Changes, Warnings } from './changes.tsx';
import { withoutChanged, type FieldProblems } from './field-problems.ts';
import { firstAddress, forgetNewLocation, newLocation, type NewLocation } from './new-location.ts';
import { randomKey } from './random-key.ts';
import './set-up.css';
import { draftOf, fieldsOf, idsOf, readDraft, type Schema } from './settings-fields.ts';
import { SettingsForm } from './settings-form.tsx';
import { Steps } from './steps.tsx';
import { useProblems } from './use-problems.ts';
import { linesOf } from '../people/right-of.ts';

/** Adds a location: its POS, its settings, and a preview before it is stored. Its page then connects it. */
export function NewLocationPage() {
  const loaded = useLoaded((signal) => ask<{ providers: ShownProvider[] }>('GET', '/providers', { signal }), []);
  return (
    <Page title="Add a location">
      <WithRole needs="integrator" at={{ anywhere: true }} to="To add a location">
        <Loading loaded={loaded}>{({ providers }) => <Wizard providers={providers} />}</Loading>
      </WithRole>
    </Page>
  );
}

type Would = ChangedLocation & { of: NewLocation };

function Wizard({ providers }: { providers: readonly ShownProvider[] }) {
  const draft = newLocation.value;
  const { route } = useLocation();
  const [{ step }, go] = useFilters('step');
  const [isSentBack, setSentBack] = useState(false);
  const [would, setWould] = useState<Would>();
  const provider = providers.find(({ integration }) => integration === draft.integration);
  const fields = provider === undefined ? [] : fieldsOf(provider.settings);
  const settings = draft.settings[draft.integration] ?? draftOf(fields, {});
  const isFilled = provider !== undefined && draft.locationId !== '' && draft.about.name.trim() !== '';
  const now = stepOf(step, isFilled, would?.of === draft);
  const heading = useRef<HTMLHeadingElement>(null);
  const shown = useRef(now);
  useEffect(() => {
    if (shown.current !== now && !isSentBack) heading.current?.focus();
    shown.current = now;
  }, [now]);

  const read = readDraft(fields, settings);
  const send = (dryRun: '' | '?dryRun=true', headers?: Record<string, string>): Promise<ChangedLocation> =>
    // A field may be left before there is an id.
    ask<ChangedLocation>('PUT', `/locations/${encodeURIComponent(draft.locationId || '-')}${dryRun}`, {
      body: { integration: draft.integration, settings: read.settings, ...readAbout(draft.about) },
      ...(headers && { headers }),
    });
  const { problems, setProblems, check, judge } = useProblems(draft, {
    wrong: read.problems,
    ids: ['locationId', 'integration', ...aboutIds(draft.about), ...idsOf(fields)],
    send: () => send('?dryRun=true'),
    mayJudge: mayAdd(draft),
  });

  const put = (some: Partial<NewLocation>): void => {
    newLocation.value = { ...draft, ...some };
    setProblems(withoutChanged(problems, firstOf(draft), firstOf(newLocation.value)));
  };
  const next = async (): Promise<unknown> => {
    const { found, answer } = await check();
    const ids = Object.keys(found);
    const isFirstWrong = ids.some((id) => !id.startsWith('settings'));
    setSentBack(now === 2 && isFirstWrong);
    if (isFirstWrong && now === 2) return go({ step: '' });
    if (isFirstWrong || (now === 2 && ids.length > 0)) return false;
    setWould(answer && { ...answer, of: draft });
    return go({ step: now === 1 ? '2' : '3' });
  };

  const save = async (): Promise<void> => {
    // What was reviewed is what is stored: a new location, or the one that was there.
    await send('', typeof would?.etag === 'string' ? { 'if-match': would.etag } : { 'if-none-match': '*' });
    await untilAllowed(draft.locationId);
    await readNames().catch(() => {});
    if (provider?.connect === false && may('integrator', draft.locationId)) await makeFirstToken(draft.locationId);
    announce(`${draft.about.name} is stored`);
    route(`${pageOf.location(draft.locationId)}?added=1`);
    forgetNewLocation();
  };

  return (
    <div class="set-up">
      <Steps now={now} />
      <div class="sheet">
        <h2 ref={heading} tabIndex={-1}>
          {now === 1 ? 'Which restaurant, and which POS?' : now === 2 ? `Settings for ${draft.about.name}` : 'Save it'}
        </h2>
        <Form
          key={now}
          action={
            now === 1 ? 'Next: settings' : now === 2 ? 'Next: review and save' : would?.created ? 'Save' : undefined
          }
          back={
            now > 1 && (
              <button type="button" onClick={() => go({ step: now === 3 ? '2' : '' })}>
                Back
              </button>
            )
          }
          wasTried={isSentBack}
          onLeave={judge}
          onSubmit={now === 3 ? save : next}
        >
          {now === 1 && <First draft={draft} problems={problems} providers={providers} put={put} />}
          {now === 2 && (
            <>
              <p class="faint">Secrets are stored encrypted, and are never shown again: copy what you generate.</p>
              <SettingsForm
                key={draft.integration}
                fields={fields}
                draft={settings}
                problems={problems}
                onChange={(next) => {
                  put({ settings: { ...draft.settings, [draft.integration]: next } });
                  setProblems(withoutChanged(problems, settings, next, 'settings.'));
                }}
              />
            </>
          )}
          {now === 3 && would !== undefined && <Review would={would} providers={providers} />}
        </Form>
      </div>
    </div>
  );
}

/** Whether the operator may add such a location. A request that they may not send is recorded in the audit. */
function mayAdd({ locationId, about }: NewLocation): boolean {
  const own = scopeOf('integrator');
  return (
    own === null || linesOf(about.groups).some((each) => own.groups.includes(each) && locationId.startsWith(`${each}:`))
  );
}

/** What the first step asks for, by the fields of the request. */
const firstOf = ({ about, locationId, integration }: NewLocation) => ({ ...about, locationId, integration });

/** A step is only shown if the steps before it are filled in, for example after the page was reloaded. */
function stepOf(step: string, isFilled: boolean, isReviewed: boolean): 1 | 2 | 3 {
  if (step === '3' && isFilled && isReviewed) return 3;
  return (step === '2' || step === '3') && isFilled ? 2 : 1;
}

type AboutFirst = {
  draft: NewLocation;
  problems: FieldProblems;
  providers: readonly ShownProvider[];
  put: (some: Partial<NewLocation>) => void;
};

function First({ draft, problems, providers, put }: AboutFirst) {
  const own = scopeOf('integrator');
  const isKnown = knownLocations.value.some(({ locationId }) => locationId === draft.locationId);
  // Who may add locations only in one group gets this group at once.
  useEffect(() => {
    const [only, ...others] = own?.groups ?? [];
    if (only !== undefined && others.length === 0 && draft.about.groups === '')
      put({ about: { ...draft.about, groups: only } });
  }, []);
  return (
    <>
      <FieldGroup
        id="new-pos"
        label={labelOf('integration')}
        isRequired
        problem={draft.integration === '' ? 'Choose a POS.' : undefined}
        refused={problems['integration']}
      >
        <div class="set-up-cards">
          {providers.map((provider) => {
            const { title = provider.integration, description }: Schema = provider.settings;
            return (
              <Tick
                key={provider.integration}
                class="card"
                radio="integration"
                isOn={draft.integration === provider.integration}
                onTick={() => put({ integration: provider.integration })}
              >
                <b title={provider.integration}>{title}</b>
                {description !== undefined && <span class="faint">{description}</span>}
                <span class="faint">
                  {provider.connect
                    ? 'Connect enters our webhook address there.'
                    : 'You enter our webhook address there.'}
                </span>
              </Tick>
            );
          })}
        </div>
      </FieldGroup>
      <Text
        id="new-id"
        label="Id"
        isRequired
        isCode
        problem={isKnown ? 'A location with this id exists already.' : undefined}
        refused={problems['locationId']}
        hint={
          isKnown ? (
            <>
              <a href={pageOf.location(draft.locationId)}>Open this location</a> to change it.
            </>
          ) : (
            <>
              The location's id on the ordering platform. It cannot be changed later.
              {/\s/.test(draft.locationId) && <b> It contains a space. Is it so on the platform too?</b>}
            </>
          )
        }
        value={draft.locationId}
        onWrite={(id) => put({ locationId: id.trim() })}
      />
      <AboutFields
        draft={draft.about}
        problems={problems}
        groups={knownGroups()}
        isNew
        onChange={(about) => put({ about })}
      />
    </>
  );
}

type AboutReview = { would: Would; providers: readonly ShownProvider[] };

function Review({ would: { created, locationId, changes, warnings, of }, providers }: AboutReview) {
  const provider = providers.find(({ integration }) => integration === of.integration);
  const { check: isTested = false, connect = true } = provider ?? {};
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
        This will be stored for <b>{of.about.name}</b>, with the id <code>{locationId}</code>. Orders that wait for it
        are then sent at once.{isTested && ' Then it is tested whether the POS accepts the settings.'}
        {!connect && ' A token for its webhooks is made too.'}
      </p>
      <Changes changes={changes} isNew />
      <Warnings warnings={warnings} />
    </>
  );
}

/** Each POS needs a token. Without one, for example because PUBLIC_URL is not set, the page of the location says so. */
async function makeFirstToken(locationId: string): Promise<void> {
  const headers = { 'idempotency-key': randomKey() };
  const path = `/locations/${encodeURIComponent(locationId)}/tokens`;
  const made = await ask<IssuedToken>('POST', path, { body: {}, headers }).catch(() => undefined);
  firstAddress.value = made && { locationId, url: made.url };
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
