import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, query } from '../api.ts';
import { may } from '../may.ts';
import { Badge } from '../parts/badge.tsx';
import { holdRows } from '../parts/hold-rows.ts';
import { LocationLink, LocationName } from '../parts/location-field.tsx';
import { vendorName } from '../parts/names.ts';
import { OrderName } from '../parts/order-name.tsx';
import { Page } from '../parts/page.tsx';
import { Paged } from '../parts/paged.tsx';
import { Pick } from '../parts/pick.tsx';
import { Said } from '../parts/said.tsx';
import { Ago, Time } from '../parts/time.tsx';
import { OUTCOME_TONES } from '../parts/tones.ts';
import { useChosen, type Chosen } from '../parts/use-chosen.ts';
import { useFilters } from '../parts/use-filters.ts';
import { useLoaded } from '../parts/use-loaded.ts';
import { FixSettings } from '../set-up/configuration.tsx';
import type { ListedWebhooks, ListedWebhook, ShownWebhook, WebhookOutcome } from '../wire.ts';
import { pageOf } from '../parts/page-of.ts';
import './webhooks.css';
import { WebhooksFilters } from './webhooks-filters.tsx';
import { FILTERS, type WebhookFilter } from './webhook-filter.ts';
import { explainDrop, settingsThatVerify } from './explain.ts';
import { mayChange, outcomeMeaning } from './outcome-meaning.ts';
import { ReplayAll } from './replay-all.tsx';

const LIMIT = 50;
const EVERY_MS = 5_000;

export function WebhooksPage() {
  const [{ cursor, ...filter }, change] = useFilters(...FILTERS, 'cursor');
  return (
    <Page title="Webhooks">
      <WebhooksFilters filter={filter} change={(some) => change({ ...some, cursor: '' })} />
      <Found key={query(filter)} filter={filter} cursor={cursor} />
    </Page>
  );
}

function Found({ filter, cursor }: { filter: WebhookFilter; cursor: string }) {
  const chosen = useChosen();
  /** All rows that were shown: rows of several pages can be chosen. */
  const known = useRef(new Map<string, ListedWebhook>());
  const asked = query({ ...filter, cursor, limit: LIMIT });
  // Only the newest page changes.
  const found = useLoaded(
    (signal) => ask<ListedWebhooks>('GET', `/webhooks${asked}`, { signal }),
    [asked],
    cursor === '' ? EVERY_MS : undefined,
  );
  /** How often a setting was corrected here. */
  const [fixes, setFixes] = useState(0);
  /** The outcomes of the replays that were made here. */
  const [replayed, setReplayed] = useState<Outcomes>(new Map());
  const newest = found.value?.webhooks[0]?.webhookId;
  for (const webhook of found.value?.webhooks ?? []) known.current.set(webhook.webhookId, webhook);
  const at = (cursor: string): string => `/console/webhooks${query({ ...filter, cursor })}`;
  return (
    <>
      {filter.location !== '' && filter.outcome === 'dropped' && cursor === '' && newest !== undefined && (
        <Cause newest={newest} replayed={replayed} onSaved={() => setFixes(fixes + 1)} />
      )}
      <ReplayAll
        key={fixes}
        isBegun={fixes > 0}
        filter={filter}
        chosen={[...chosen.ids].flatMap((id) => known.current.get(id) ?? [])}
        onClear={chosen.clear}
        onReplayed={(run) => {
          const open = run.filter(mayChange).map(({ replayOf, outcome }) => [replayOf, outcome] as const);
          setReplayed(new Map([...replayed, ...open]));
          found.again();
        }}
      />
      <Paged found={found} cursor={cursor} at={at} isEmpty={({ webhooks }) => webhooks.length === 0}>
        {(page) => <List key={cursor} page={page} replayed={replayed} chosen={chosen} isLater={cursor !== ''} />}
      </Paged>
    </>
  );
}

/** By the id of the original. */
type Outcomes = ReadonlyMap<string, WebhookOutcome>;

const CAUSES_IN_SETTINGS = /^(signature_wrong|password_wrong|key_unknown|signed_url_unknown|not_authentic)$/;

/** Why the newest webhook of a location was dropped, and the settings that verify it. */
function Cause({ newest, replayed, onSaved }: { newest: string; replayed: Outcomes; onSaved: () => void }) {
  // A later webhook would take away the form in which somebody writes.
  const [webhookId] = useState(newest);
  const path = `/webhooks/${webhookId}?contents=false`;
  const { value, again } = useLoaded((signal) => ask<ShownWebhook>('GET', path, { signal }), [path]);
  if (value === undefined) return null;
  const { cause, locationId, today } = value;
  const isOfSettings = CAUSES_IN_SETTINGS.test(cause?.code ?? '');
  const { what, details, toDo } = explainDrop(value, value);
  const outcome = replayed.get(webhookId) ?? value.replays.find(mayChange)?.outcome;
  // A token is not judged again: nothing has to be fixed.
  const isFixed = outcome !== undefined || ('events' in today && cause?.code !== 'old_token');
  return (
    <div class="sheet case">
      {isFixed ? (
        <p>
          <b>The cause is fixed.</b>{' '}
          {outcome === undefined ? 'Replay them now.' : `The newest webhook was replayed: ${outcome}.`} The problem was:
          “{what}.”
        </p>
      ) : (
        <p>
          <b>{what}.</b> <Said text={(isOfSettings ? details[0] : toDo.at(-1)?.say) ?? ''} />
        </p>
      )}
      {!isFixed && isOfSettings && (
        <FixSettings
          locationId={locationId}
          said={JSON.stringify(settingsThatVerify(value))}
          onSaved={() => {
            again();
            onSaved();
          }}
        />
      )}
      <p>
        More about <a href={pageOf.webhook(webhookId)}>the newest webhook</a> and <LocationLink id={locationId} />.
      </p>
    </div>
  );
}

type AboutList = { page: ListedWebhooks; isLater: boolean; replayed: Outcomes; chosen: Chosen };

function List({ page, isLater, ...shown }: AboutList) {
  const { chosen } = shown;
  const list = useRef<HTMLDivElement>(null);
  const showNew = { rows: page.webhooks as readonly ListedWebhook[], waiting: 0 };
  const [{ rows, waiting }, hold] = useState(showNew);
  useEffect(() => {
    const isRead = chosen.ids.size > 0 || scrollY > 0 || list.current?.matches(':hover, :focus-within') === true;
    hold((shown) => holdRows(shown.rows, page.webhooks, ({ webhookId }) => webhookId, isRead));
  }, [page]);
  return (
    <>
      {waiting > 0 && (
        <div class="webhooks-new">
          <button type="button" onClick={() => hold(showNew)}>
            Show {waiting} new
          </button>
        </div>
      )}
      <div ref={list}>
        {rows.length === 0 ? (
          <p>{page.next !== null ? NOT_YET : isLater ? 'There are no older webhooks.' : 'No webhooks match.'}</p>
        ) : (
          <Rows webhooks={rows} {...shown} />
        )}
      </div>
    </>
  );
}

const NOT_YET = 'No webhooks match yet. Older webhooks were not searched.';

type AboutRows = { webhooks: readonly ListedWebhook[]; replayed: Outcomes; chosen: Chosen };

function Rows({ webhooks, replayed, chosen }: AboutRows) {
  const mine = webhooks.filter(({ locationId }) => may('operator', locationId)).map(({ webhookId }) => webhookId);
  return (
    <table class="webhooks-list linked">
      <thead>
        <tr>
          <th scope="col">
            {mine.length > 0 && <Pick chosen={chosen} ids={mine} label="Choose all shown" />}
            Received
          </th>
          <th scope="col">Outcome</th>
          <th scope="col" class="webhooks-order">
            Order
          </th>
          <th scope="col">Location</th>
          <th scope="col">Problem</th>
        </tr>
      </thead>
      <tbody>
        {webhooks.map((webhook) => (
          <Row
            key={webhook.webhookId}
            webhook={webhook}
            now={replayed.get(webhook.webhookId) ?? webhook.replayed ?? undefined}
            chosen={mine.includes(webhook.webhookId) ? chosen : undefined}
          />
        ))}
      </tbody>
    </table>
  );
}

type AboutRow = {
  webhook: ListedWebhook;
  /** The outcome of its replay. */
  now: WebhookOutcome | undefined;
  chosen: Chosen | undefined;
};

function Row({ webhook, now, chosen }: AboutRow) {
  const { webhookId, receivedAt, outcome, locationId, integration, reason, truncated } = webhook;
  const { serviceOrderId, callOutCode } = webhook;
  return (
    <tr>
      <th scope="row">
        {chosen !== undefined && <Pick chosen={chosen} ids={[webhookId]} label="Choose this webhook" />}
        <a href={pageOf.webhook(webhookId)}>
          <Time at={receivedAt} />
        </a>{' '}
        <span class="webhooks-about">
          <Ago at={receivedAt} />
        </span>
      </th>
      <td>
        <Badge tone={OUTCOME_TONES[now ?? outcome]}>{now === undefined ? outcome : `replayed: ${now}`}</Badge>
        {webhook.polled && <span class="webhooks-about"> polled</span>}
        {webhook.replayOf !== null && <span class="webhooks-about"> a replay</span>}
        {truncated && <span class="webhooks-about"> cut off</span>}
      </td>
      <td class="webhooks-order">
        {serviceOrderId !== null && (
          <a href={pageOf.order(serviceOrderId)}>
            <OrderName id={serviceOrderId} code={callOutCode} />
          </a>
        )}
      </td>
      <td class="webhooks-place">
        <LocationName id={locationId} /> <span class="webhooks-about">{vendorName(integration)}</span>
      </td>
      <td class="webhooks-reason">
        {now !== undefined
          ? `Was ${outcome} before its replay.`
          : outcome === 'dropped'
            ? explainDrop(webhook, webhook).what
            : reason === null
              ? ''
              : outcomeMeaning(outcome, reason)}
      </td>
    </tr>
  );
}
