import { useLocation, useRoute } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';
import { AskButton } from '../parts/ask-button.tsx';
import { ask, query } from '../api.ts';
import { Acts } from '../audit/actions.tsx';
import { may, onlyConfigures } from '../may.ts';
import { Badge } from '../parts/badge.tsx';
import { CaseAndNotes } from '../parts/case.tsx';
import { CopyButton, Copyable } from '../parts/copyable.tsx';
import { Dated } from '../parts/dated.tsx';
import { Fact } from '../parts/fact.tsx';
import { Loading } from '../parts/loading.tsx';
import { locationName, vendorName } from '../parts/names.ts';
import { Page } from '../parts/page.tsx';
import { pageOf } from '../parts/page-of.ts';
import { ShortId } from '../parts/short-id.tsx';
import { Ago, Time } from '../parts/time.tsx';
import { useLoaded, type Loaded } from '../parts/use-loaded.ts';
import { WithRole } from '../parts/with-role.tsx';
import { Configuration } from '../set-up/configuration.tsx';
import { Connection } from '../set-up/connection.tsx';
import { Steps } from '../set-up/steps.tsx';
import { ScoreTable } from '../vendors/score-table.tsx';
import type { Scorecards, ShownLocation } from '../wire.ts';
import { notReachedInWords } from '../../src/core/domain/explain-cause.ts';
import { connectionTone, failingTone, heldOf, isInTrouble, tokenName } from './assess-location.ts';
import { AlarmBanner, useAlarms, type Alarm } from './alarms.tsx';
import { ContactLine } from './contact-line.tsx';
import { BusyOrNot, KitchenNow } from './kitchen-now.tsx';
import { LastHourErrors, LastHourWebhooks } from './last-hour.tsx';
import { LastSeen } from './locations-page.tsx';
import './locations.css';
import { PauseDialog, ResumeDialog } from './pause-dialog.tsx';
import { isByPos, pausedBy, stateOfOrders } from './pause.ts';
import { Tokens } from './tokens.tsx';
import { firstAddress } from '../set-up/new-location.ts';

const EVERY_MS = 10_000;
const SCORES_EVERY_MS = 60_000;
const MISSED_MS = 24 * 60 * 60_000;

export function LocationPage() {
  const locationId = useRoute().params['locationId'] ?? '';
  const loaded = useLoaded(
    (signal) => ask<ShownLocation>('GET', `/locations/${encodeURIComponent(locationId)}`, { signal }),
    [locationId],
    EVERY_MS,
  );
  const alarms = useAlarms(locationId);
  const isNew = useLocation().query['added'] !== undefined;
  return (
    <Page
      title={locationName(locationId)}
      beside={
        <>
          <CopyButton text={locationId} label={`the id ${locationId}`} shows={<ShortId id={locationId} />} />
          {alarms.map(
            (alarm) => alarm.isCall && <AlarmBanner key={alarm.what} alarm={alarm} location={loaded.value} />,
          )}
          {!isNew && !onlyConfigures(locationId) && <Links locationId={locationId} />}
        </>
      }
    >
      {isNew && <Added locationId={locationId} />}
      <Loading loaded={loaded}>
        {(location) => <Shown key={locationId} location={location} loaded={loaded} isNew={isNew} alarms={alarms} />}
      </Loading>
    </Page>
  );
}

/** The last step of the wizard is on the location's own page, so that it can be left and resumed. */
function Added({ locationId }: { locationId: string }) {
  useEffect(() => () => void (firstAddress.value = undefined), []);
  return (
    <>
      <Steps now={4} />
      <p>
        <b>{locationName(locationId)} is stored.</b> Now give the POS our webhook address and each secret that you
        copied, or generate it again under Edit, and place a test order. <a href={pageOf.location(locationId)}>Done</a>
      </p>
    </>
  );
}

function Links({ locationId }: { locationId: string }) {
  const location = locationId;
  return (
    <nav class="row locations-links" aria-label="About this location">
      <a href={`/console${query({ location })}`}>On the board</a>
      <a href={`/console/orders${query({ location, open: true })}`}>Open orders</a>
      <a href={`/console/webhooks${query({ outcome: 'dropped', location })}`}>Dropped webhooks</a>
      <a href={`/console/traffic${query({ location })}`}>Traffic</a>
    </nav>
  );
}

type AboutShown = { location: ShownLocation; loaded: Loaded<ShownLocation>; isNew: boolean; alarms: readonly Alarm[] };

function Shown({ location, loaded, isNew, alarms }: AboutShown) {
  const { locationId, webhookUrl } = location;
  return (
    <>
      <div class="beside">
        {isNew && <Connection location={location} onDone={loaded.again} isNew />}
        <div>
          {!isNew && <Reach location={location} />}
          <Now location={location} onDone={loaded.again} />
        </div>
        {!isNew && (
          <CaseAndNotes
            path={`/locations/${encodeURIComponent(locationId)}`}
            care={location}
            isNeeded={isInTrouble(location, alarms.length)}
            mayAct={may('operator', locationId)}
            isSilent={alarms.some(({ isCall }) => isCall)}
            reload={loaded.again}
          />
        )}
      </div>
      {!isNew && <Connection location={location} onDone={loaded.again} isNew={false} />}

      <Configuration location={location} onDone={loaded.again} />

      {!onlyConfigures(locationId) && <Vendor locationId={locationId} />}

      <section class="sheet" aria-labelledby="location-webhooks">
        <h2 id="location-webhooks">Webhooks</h2>
        {webhookUrl === null ? (
          <p>
            The address is not known: <code>PUBLIC_URL</code> is not set. Set it and restart the service.
          </p>
        ) : (
          <>
            <p class="faint">The POS calls this address. A token is shown once, when it is made.</p>
            <Copyable label="webhook address" text={`${webhookUrl}?token=<token>`} />
          </>
        )}
        <OldToken location={location} />
        <Tokens location={location} onRevoked={loaded.again} />
      </section>

      {location.actions.length > 0 && (
        <section class="sheet" aria-labelledby="location-actions">
          <h2 id="location-actions">What operators did</h2>
          <Acts actions={location.actions} at={locationId} label="What operators did here, newest first" />
          {may('admin', locationId) && <a href={`/console/audit${query({ location: locationId })}`}>In the audit</a>}
        </section>
      )}
    </>
  );
}

/** What the location does now. */
function Now({ location, onDone }: { location: ShownLocation; onDone: () => void }) {
  const { locationId, pausedAt } = location;
  return (
    <section class="sheet" aria-labelledby="location-now">
      <div class="page-head">
        <h2 id="location-now">Now</h2>
        <WithRole
          needs="operator"
          at={locationId}
          to={pausedAt === null ? 'To pause it or make it busy' : 'To resume it'}
        >
          <div class="buttons">
            {pausedAt === null && <BusyOrNot location={location} onDone={onDone} />}
            <PauseOrResume location={location} onDone={onDone} />
          </div>
        </WithRole>
      </div>
      <dl class="locations-facts">
        <Fact name="Orders">
          <Orders location={location} />
        </Fact>
        <Fact name="Kitchen">
          <KitchenNow kitchen={location.kitchen} orders={stateOfOrders(location)} />
        </Fact>
        <Fact name="Last webhook">
          <LastSeen at={location.lastSeenAt} />
        </Fact>
        <Fact name="Webhooks, last hour">
          <LastHourWebhooks location={location} />
        </Fact>
        <Fact name="Webhooks with errors, last hour">
          <LastHourErrors location={location} />
        </Fact>
        <Fact name="Not stored today">
          {location.notStored > 0 &&
            `${location.notStored} webhooks that were not authenticated, beyond the daily limit`}
        </Fact>
        <MissingWebhooks location={location} />
        <Fact name="Webhooks with an old token">
          {location.oldToken && (
            <>
              <Badge tone="bad">{location.oldToken.webhooks} in 24 h</Badge>, the last{' '}
              <Ago at={location.oldToken.lastReceivedAt} />
            </>
          )}
        </Fact>
        <Fact name="Connection">{location.grant && <ConnectionEnd grant={location.grant} />}</Fact>
        <Fact name="Last changed">
          <Ago at={location.updatedAt} />
        </Fact>
      </dl>
    </section>
  );
}

/** Whether it takes orders, in a sentence. */
function Orders({ location }: { location: ShownLocation }) {
  const { locationId, pausedAt, pausedUntil, pausedReason, reconnectNeededAt, open, kitchen } = location;
  const state = stateOfOrders(location);
  if (state === 'taking orders') {
    const held = heldOf(location);
    const href = `/console/orders${query({ location: locationId, state: 'held' })}`;
    return (
      <>
        {kitchen.state === 'unreachable' ? 'not paused' : <Badge tone="good">{state}</Badge>}{' '}
        {held && !onlyConfigures(locationId) ? <a href={href}>{held}</a> : held}
      </>
    );
  }
  if (state === 'failing' && open.failing !== null) {
    return (
      <>
        <Badge tone={failingTone(location)}>{notReachedInWords(open.failing)}</Badge>{' '}
        {!onlyConfigures(locationId) && (
          <a href={`/console/orders${query({ location: locationId })}`}>See its orders</a>
        )}
      </>
    );
  }
  if (pausedAt === null) {
    return (
      <>
        <Badge tone="bad">access ended</Badge> Orders wait since <Time at={reconnectNeededAt ?? ''} />. The restaurant
        has to connect its POS again.
      </>
    );
  }
  return (
    <>
      <Badge tone="warn">paused</Badge> by {pausedBy(location)} since <Time at={pausedAt} />
      <Dated before=", until" at={pausedUntil} none=", until somebody resumes it" />
      {pausedReason !== null && `: ${pausedReason}`}. New orders wait.
    </>
  );
}

/** How to reach the restaurant and its POS. */
function Reach({ location: { contacts, address, backOfficeUrl, integration } }: { location: ShownLocation }) {
  if (contacts.length === 0 && address === null && backOfficeUrl === null) return null;
  return (
    <section class="sheet locations-reach" aria-labelledby="location-reach">
      <h2 id="location-reach">The restaurant</h2>
      <dl class="locations-facts">
        {contacts.map((contact) => (
          <Fact key={JSON.stringify(contact)} name="Contact">
            <ContactLine contact={contact} />
          </Fact>
        ))}
        <Fact name="Address">{address}</Fact>
      </dl>
      {backOfficeUrl !== null && (
        <a class="button" href={backOfficeUrl} target="_blank" rel="noreferrer">
          Open {vendorName(integration)}, in a new tab
        </a>
      )}
    </section>
  );
}

/** The scorecard of the location's POS. Shows nothing if the location had no orders. */
function Vendor({ locationId }: { locationId: string }) {
  const { value } = useLoaded(
    (signal) => ask<Scorecards>('GET', `/scorecards${query({ location: locationId })}`, { signal }),
    [locationId],
    SCORES_EVERY_MS,
  );
  return (
    <>
      {value?.scorecards.map(({ integration, day, week }) => (
        <section key={integration} class="sheet" aria-label={`${vendorName(integration)} here`}>
          <h2>{vendorName(integration)} here</h2>
          <ScoreTable
            what="Last"
            rows={[
              { name: '24 hours', score: day },
              { name: '7 days', score: week },
            ]}
          />
        </section>
      ))}
    </>
  );
}

/** Says if webhooks are missing, or that the service cannot notice this because it cannot poll the POS. */
function MissingWebhooks({ location }: { location: ShownLocation }) {
  const { missedAt, knows, integration, lastSeenAt, open } = location;
  const wasRecent = missedAt !== null && Date.now() - Date.parse(missedAt) < MISSED_MS;
  const isOver = [lastSeenAt, open?.replayedAt].some((at) => at && missedAt && at > missedAt);
  if (knows.readStatus && !wasRecent) return null;
  return (
    <Fact name="Webhooks that never came">
      {wasRecent ? (
        <>
          {!isOver && <Badge tone="bad">missing</Badge>} <Ago at={missedAt} />, the POS had a status that no webhook had
          reported{isOver && '. Webhooks have arrived since'}
        </>
      ) : (
        `not noticed: ${vendorName(integration)} cannot be asked for a status`
      )}
    </Fact>
  );
}

/** What to do if a POS still uses a token that is no longer valid. */
function OldToken({ location }: { location: ShownLocation }) {
  const { locationId, oldToken } = location;
  if (oldToken === null) return null;
  const listed = query({ location: locationId, outcome: 'dropped', oldToken: 'true' });
  const token = location.tokens.find(({ tokenId }) => tokenId === oldToken.tokenId);
  return (
    <div class="problem">
      <p>
        Webhooks arrive with <span title={oldToken.tokenId}>{token ? tokenName(token) : 'a token'}</span>, which is{' '}
        {oldToken.state}. They are refused, and{' '}
        {onlyConfigures(locationId) ? 'stored for a day' : <a href={`/console/webhooks${listed}`}>stored for a day</a>}.
      </p>
      {oldToken.state === 'of another integration' ? (
        <p>They come from the former POS. Disable them there. They cannot be replayed.</p>
      ) : (
        <p>
          <WithRole needs="integrator" at={locationId} to="To give the POS a new token">
            Give the POS a new token (under Connection: {location.knows.connect ? 'Connect' : 'Make a token'}).
          </WithRole>{' '}
          Then the webhooks can be replayed.
        </p>
      )}
    </div>
  );
}

function ConnectionEnd({ grant: { grantedAt, daysLeft } }: { grant: NonNullable<ShownLocation['grant']> }) {
  return (
    <>
      {daysLeft === null ? (
        'does not expire'
      ) : (
        <Badge tone={connectionTone(daysLeft)}>
          {daysLeft < 0 ? 'has ended' : `lasts ${daysLeft} more ${daysLeft === 1 ? 'day' : 'days'}`}
        </Badge>
      )}
      ; renewed <Ago at={grantedAt} />
    </>
  );
}

function PauseOrResume({ location, onDone }: { location: ShownLocation; onDone: () => void }) {
  const [chosen, setChosen] = useState<'pause' | 'resume'>();
  const shared = { locations: [location], onDone, onClose: () => setChosen(undefined) };
  return (
    <>
      {location.pausedAt === null ? (
        <AskButton onClick={() => setChosen('pause')}>Pause</AskButton>
      ) : (
        <>
          {!isByPos(location) && <AskButton onClick={() => setChosen('pause')}>Change the pause</AskButton>}
          <AskButton class="primary" onClick={() => setChosen('resume')}>
            Resume
          </AskButton>
        </>
      )}
      {chosen === 'pause' && <PauseDialog {...shared} />}
      {chosen === 'resume' && <ResumeDialog {...shared} />}
    </>
  );
}
