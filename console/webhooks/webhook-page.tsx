import type { ComponentChildren } from 'preact';
import { useRoute } from 'preact-iso';
import { useState } from 'preact/hooks';
import { AskButton } from '../parts/ask-button.tsx';
import { ask } from '../api.ts';
import { Badge } from '../parts/badge.tsx';
import { CopyButton } from '../parts/copyable.tsx';
import { Loading } from '../parts/loading.tsx';
import { LocationLink } from '../parts/location-field.tsx';
import { locationName, vendorName } from '../parts/names.ts';
import { Page } from '../parts/page.tsx';
import { Reveal } from '../parts/reveal.tsx';
import { Details } from '../parts/said.tsx';
import { ShortId } from '../parts/short-id.tsx';
import { Ago, Time } from '../parts/time.tsx';
import { OUTCOME_TONES } from '../parts/tones.ts';
import { useLoaded } from '../parts/use-loaded.ts';
import { WithRole } from '../parts/with-role.tsx';
import type { ShownWebhook } from '../wire.ts';
import { bytesInWords } from './bytes-in-words.ts';
import './webhooks.css';
import { WebhookContents } from './webhook-contents.tsx';
import { explainDrop, explainRefusal } from './explain.ts';
import { Explained } from './explained.tsx';
import { outcomeMeaning } from './outcome-meaning.ts';
import { ReplayDialog } from './replay-dialog.tsx';
import { WebhookLink } from './run-table.tsx';
import { Today } from './today.tsx';

/** One webhook: its outcome and cause, its contents, and what a replay would read. */
export function WebhookPage() {
  const webhookId = useRoute().params['webhookId'] ?? '';
  // The key makes each webhook a new page, with its contents hidden.
  return <LoadedWebhook key={webhookId} webhookId={webhookId} />;
}

function LoadedWebhook({ webhookId }: { webhookId: string }) {
  const path = `/webhooks/${encodeURIComponent(webhookId)}?contents=false`;
  const found = useLoaded((signal) => ask<ShownWebhook>('GET', path, { signal }), [path]);
  const [isAsked, setChosen] = useState(false);
  const [revealed, setRevealed] = useState<ShownWebhook>();
  const [replays, setReplays] = useState(0);
  const canReplay = found.value !== undefined && !('refused' in found.value.today);
  const again = (): void => {
    found.again();
    // The revealed contents include what a replay would read. That may have changed, so they are loaded again.
    setReplays((before) => before + 1);
  };
  return (
    <Page
      title={found.value === undefined ? 'Webhook' : `Webhook of ${locationName(found.value.locationId)}`}
      beside={
        <span class="webhooks-name">
          <ShortId id={webhookId} />
          <CopyButton text={webhookId} label="the id of the webhook" />
        </span>
      }
    >
      <Loading loaded={found}>
        {(shown) => (
          <div class="beside webhooks-one">
            <Head shown={shown} />
            <Standing shown={shown} canReplay={canReplay} onReplay={() => setChosen(true)} />
            <section class="sheet" aria-labelledby="webhook-contents">
              <h2 id="webhook-contents">As received</h2>
              {shown.erased ? (
                <p>Headers and body were erased with the data of the member.</p>
              ) : (
                <Reveal what="headers and body" at={shown.locationId}>
                  {() => <WebhookContents key={replays} webhookId={webhookId} onLoaded={setRevealed} />}
                </Reveal>
              )}
            </section>
            <section class="sheet" aria-labelledby="webhook-today">
              <h2 id="webhook-today">What a replay would read</h2>
              <Today shown={revealed ?? shown} isRevealed={revealed !== undefined} />
            </section>
          </div>
        )}
      </Loading>
      {isAsked && found.value !== undefined && (
        <ReplayDialog webhookId={webhookId} onClose={() => setChosen(false)} onReplayed={again} />
      )}
    </Page>
  );
}

function Head({ shown }: { shown: ShownWebhook }) {
  const { outcome, reason, locationId, integration, replays } = shown;
  return (
    <section class="sheet webhooks-head" aria-label="Outcome">
      <p class="webhooks-outcome">
        <Badge tone={OUTCOME_TONES[outcome]}>{outcome}</Badge> {outcomeMeaning(outcome, reason)}
      </p>
      <dl>
        <Fact name="Received">
          <Time at={shown.receivedAt} />, <Ago at={shown.receivedAt} />
        </Fact>
        <Fact name="Location">
          <LocationLink id={locationId} />, {vendorName(integration)}
        </Fact>
        <Fact name="Events">{shown.events}</Fact>
        <Fact name="Size">{bytesInWords(shown.bytes)}</Fact>
        {shown.truncated && <Fact name="Cut off">only its beginning is stored</Fact>}
        {shown.polled && <Fact name="Polled">the service asked the POS for the status</Fact>}
        {shown.replayOf !== null && (
          <Fact name="Replay of">
            the webhook of <WebhookLink webhookId={shown.replayOf} at={shown.firstReceivedAt} />
          </Fact>
        )}
        {replays.length > 0 && (
          <Fact name={shown.replayOf === null ? 'Replays' : 'Other replays'}>
            <ul class="webhooks-replays">
              {replays.map((replay) => (
                <li key={replay.webhookId}>
                  <WebhookLink webhookId={replay.webhookId} at={replay.receivedAt} />{' '}
                  <Badge tone={OUTCOME_TONES[replay.outcome]}>{replay.outcome}</Badge>
                </li>
              ))}
            </ul>
          </Fact>
        )}
      </dl>
    </section>
  );
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Why it was dropped or cannot be replayed, and the button that replays it. */
function Standing({ shown, canReplay, onReplay }: { shown: ShownWebhook; canReplay: boolean; onReplay: () => void }) {
  const { outcome, reason, today, replays } = shown;
  const isWorthIt = outcome === 'dropped' && 'events' in today && replays.every((each) => each.outcome === 'dropped');
  const button = (
    <div class="buttons">
      <WithRole needs="operator" at={shown.locationId} to="To replay it">
        <AskButton class={isWorthIt ? 'primary' : ''} disabled={!canReplay} onClick={onReplay}>
          Replay
        </AskButton>
      </WithRole>
    </div>
  );
  if (outcome !== 'dropped') {
    return (
      <section class="sheet webhooks-standing" aria-labelledby="webhook-replay">
        <h2 id="webhook-replay">Replay</h2>
        {'refused' in today ? (
          <Explained explanation={explainRefusal(today, shown)} />
        ) : (
          <p>A replay applies it again, as a new webhook. A dry run first shows the result.</p>
        )}
        {button}
      </section>
    );
  }
  const success = replays.find((replay) => replay.outcome !== 'dropped');
  const isFixed = success !== undefined || 'events' in today;
  return (
    <section class="sheet webhooks-standing" aria-labelledby="webhook-why">
      <h2 id="webhook-why">Why was this dropped?</h2>
      {isFixed && (
        <p class="webhooks-fixed">
          {success === undefined ? (
            'The cause is fixed. Replay it now.'
          ) : (
            <>
              Solved. Its replay of <WebhookLink webhookId={success.webhookId} at={success.receivedAt} /> is{' '}
              {success.outcome}.
            </>
          )}
        </p>
      )}
      <Explained explanation={explainDrop(shown, shown)} isOver={isFixed}>
        {reason !== null && <Details>{reason}</Details>}
        {button}
      </Explained>
      {'refused' in today && <Explained explanation={explainRefusal(today, shown)} />}
    </section>
  );
}
