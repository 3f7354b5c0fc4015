import { Time } from '../parts/time.tsx';
import { pageOf } from '../parts/page-of.ts';
import type { ListedAction, RecordedAction } from '../wire.ts';
import './audit.css';
import { describeAction } from './describe-action.ts';

/** Actions, one per line, with links. @param at the page's location, to which no link is shown */
export function Acts({
  actions,
  at,
  label,
}: {
  actions: readonly (RecordedAction | ListedAction)[];
  at?: string;
  label: string;
}) {
  return (
    <ul class="audit-actions" aria-label={label}>
      {actions.map((action) => (
        <Action key={action.auditId} action={action} at={at} />
      ))}
    </ul>
  );
}

function Action({ action, at }: { action: RecordedAction | ListedAction; at: string | undefined }) {
  const { serviceOrderId, webhookId, locationId } = action;
  const { sentence, tone, more } = describeAction(action);
  const from = 'source' in action && action.source !== null ? [`from ${action.source}`] : [];
  return (
    <li class={`audit-${tone}`}>
      <Time at={action.at} />
      <div>
        <span class="audit-said">{sentence}</span> <span class="audit-more">{[...more, ...from].join(' · ')}</span>
        <span class="audit-links">
          {serviceOrderId !== null && <a href={pageOf.order(serviceOrderId)}>order {serviceOrderId}</a>}
          {webhookId !== null && <a href={pageOf.webhook(webhookId)}>the webhook</a>}
          {locationId !== null && locationId !== at && <a href={pageOf.location(locationId)}>{locationId}</a>}
        </span>
      </div>
    </li>
  );
}
