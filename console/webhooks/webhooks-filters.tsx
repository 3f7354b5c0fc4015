import { Choice } from '../parts/form.tsx';
import { FoldedFilters } from '../parts/folded-filters.tsx';
import { PlaceFilters } from '../parts/place-filters.tsx';
import { OUTCOME_TONES } from '../parts/tones.ts';
import { When, Written } from '../parts/written.tsx';
import type { WebhookFilter } from './webhook-filter.ts';

const OUTCOMES = ['dropped', ...Object.keys(OUTCOME_TONES).filter((outcome) => outcome !== 'dropped')];

type AboutFilters = { filter: WebhookFilter; change: (some: Partial<WebhookFilter>) => void };

/** The inputs of the filter. */
export function WebhooksFilters({ filter, change }: AboutFilters) {
  return (
    <FoldedFilters label="Which webhooks" filters={filter} clear="/console/webhooks">
      <Choice
        id="webhooks-outcome"
        label="Outcome"
        value={filter.outcome}
        options={[['', 'any'], ...OUTCOMES.map((outcome) => [outcome, outcome] as const)]}
        onChoose={(outcome) => change({ outcome })}
      />
      <Choice
        id="webhooks-old-token"
        label="Old token"
        value={filter.oldToken}
        options={[
          ['', 'any'],
          ['true', 'only with an old token'],
          ['false', 'without them'],
        ]}
        onChoose={(oldToken) => change({ oldToken })}
      />
      <PlaceFilters
        page="webhooks"
        location={filter.location}
        group={filter.group}
        integration={filter.integration}
        change={change}
      />
      <Written
        id="webhooks-order"
        label="Order id"
        isCode
        value={filter.order}
        onWrite={(order) => change({ order })}
      />
      <When id="webhooks-since" label="Received since" value={filter.since} onSay={(since) => change({ since })} />
      <When id="webhooks-until" label="Received before" value={filter.until} onSay={(until) => change({ until })} />
    </FoldedFilters>
  );
}
