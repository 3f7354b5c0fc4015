import { ask, query } from '../api.ts';
import { Badge } from '../parts/badge.tsx';
import { Page } from '../parts/page.tsx';
import { Paged } from '../parts/paged.tsx';
import { Ago, Time } from '../parts/time.tsx';
import { OUTCOME_TONES } from '../parts/tones.ts';
import { useFilters } from '../parts/use-filters.ts';
import { useLoaded } from '../parts/use-loaded.ts';
import type { ListedWebhooks, ListedWebhook } from '../wire.ts';
import { pageOf } from '../parts/page-of.ts';
import { bytesInWords } from './bytes-in-words.ts';
import './webhooks.css';
import { WebhooksFilters } from './webhooks-filters.tsx';
import { FILTERS } from './webhook-filter.ts';
import { explainDrop } from './explain-drop.ts';
import { outcomeMeaning } from './outcome-meaning.ts';
import { ReplayAll } from './replay-all.tsx';

const LIMIT = 50;

export function WebhooksPage() {
  const [{ cursor, ...filter }, change] = useFilters(...FILTERS, 'cursor');
  const chosen = query({ ...filter, cursor, limit: LIMIT });
  const found = useLoaded((signal) => ask<ListedWebhooks>('GET', `/webhooks${chosen}`, { signal }), [chosen]);
  const at = (cursor: string): string => `/console/webhooks${query({ ...filter, cursor })}`;
  return (
    <Page
      title="Webhooks"
      beside={
        <button type="button" onClick={found.again} disabled={found.isLoading}>
          Refresh
        </button>
      }
    >
      <WebhooksFilters filter={filter} change={(some) => change({ ...some, cursor: '' })} />
      <ReplayAll key={query(filter)} filter={filter} onReplayed={found.again} />
      <Paged name="webhooks" found={found} cursor={cursor} at={at} isEmpty={({ webhooks }) => webhooks.length === 0}>
        {({ webhooks, next }) =>
          webhooks.length > 0 ? (
            <Rows webhooks={webhooks} />
          ) : (
            <Nothing isStretch={next !== null} isLater={cursor !== ''} />
          )
        }
      </Paged>
    </Page>
  );
}

function Nothing({ isStretch, isLater }: { isStretch: boolean; isLater: boolean }) {
  if (isStretch) return <p>None of these webhooks matches the filter. Older webhooks were not searched yet.</p>;
  return <p>{isLater ? 'There are no older webhooks.' : 'No stored webhook matches the filter.'}</p>;
}

function Rows({ webhooks }: { webhooks: readonly ListedWebhook[] }) {
  return (
    <table class="webhooks-list linked">
      <thead>
        <tr>
          <th scope="col">Received</th>
          <th scope="col">Outcome</th>
          <th scope="col">Location</th>
          <th scope="col">Why</th>
          <th scope="col" class="webhooks-number">
            Events
          </th>
          <th scope="col" class="webhooks-number">
            Size
          </th>
        </tr>
      </thead>
      <tbody>
        {webhooks.map((webhook) => (
          <Row key={webhook.webhookId} webhook={webhook} />
        ))}
      </tbody>
    </table>
  );
}

function Row({ webhook }: { webhook: ListedWebhook }) {
  const { webhookId, receivedAt, outcome, locationId, integration, reason, events, bytes, truncated } = webhook;
  return (
    <tr>
      <th scope="row">
        <a href={pageOf.webhook(webhookId)}>
          <Time at={receivedAt} />
        </a>{' '}
        <span class="webhooks-about">
          <Ago at={receivedAt} />
        </span>
      </th>
      <td>
        <Badge tone={OUTCOME_TONES[outcome]}>{outcome}</Badge>
        {webhook.polled && <span class="webhooks-about"> polled</span>}
        {webhook.replayOf !== null && <span class="webhooks-about"> a replay</span>}
      </td>
      <td>
        {locationId} <span class="webhooks-about">{integration}</span>
      </td>
      <td class="webhooks-reason">
        {outcome === 'dropped'
          ? explainDrop(webhook, webhook).what
          : reason === null
            ? ''
            : outcomeMeaning(outcome, reason)}
      </td>
      <td class="webhooks-number">{events}</td>
      <td class="webhooks-number">
        {bytesInWords(bytes)}
        {truncated && <span class="webhooks-about"> cut off</span>}
      </td>
    </tr>
  );
}
