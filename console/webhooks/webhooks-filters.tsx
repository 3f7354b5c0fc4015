import { FilterChoice } from '../parts/filter-choice.tsx';
import { FoldedFilters } from '../parts/folded-filters.tsx';
import { PlaceFilters } from '../parts/place-filters.tsx';
import { OUTCOME_TONES } from '../parts/tones.ts';
import { When, Written } from '../parts/written.tsx';
import type { WebhookFilter } from './webhook-filter.ts';

const OUTCOMES = ['dropped', ...Object.keys(OUTCOME_TONES).filter((outcome) => outcome !== 'dropped')];
const OLD_TOKEN = Object.entries({ '': 'any', true: 'only with an old token', false: 'without them' });

type AboutFilters = { filter: WebhookFilter; change: (some: Partial<WebhookFilter>) => void };

/** The inputs of the filter. */
export function WebhooksFilters({ filter, change }: AboutFilters) {
  const of = { page: 'webhooks', filter, change };
  return (
    <FoldedFilters label="Which webhooks" filters={filter} clear="/console/webhooks">
      <FilterChoice
        of={of}
        name="outcome"
        label="Outcome"
        options={[['', 'any'], ...OUTCOMES.map((outcome) => [outcome, outcome] as const)]}
      />
      <FilterChoice of={of} name="oldToken" label="Old token" options={OLD_TOKEN} />
      <PlaceFilters of={of} />
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
