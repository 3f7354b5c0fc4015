import { Time } from '../parts/time.tsx';
import { pageOf } from '../parts/page-of.ts';
import type { ListedAct, ToldAct } from '../wire.ts';
import './audit.css';
import { describeAct } from './describe-act.ts';

/** Acts, one line each, with links to what they were about. @param at the location whose page it is */
export function Acts({ acts, at, label }: { acts: readonly (ToldAct | ListedAct)[]; at?: string; label: string }) {
  return (
    <ul class="audit-acts" aria-label={label}>
      {acts.map((act) => (
        <Act key={act.auditId} act={act} at={at} />
      ))}
    </ul>
  );
}

function Act({ act, at }: { act: ToldAct | ListedAct; at: string | undefined }) {
  const { serviceOrderId, webhookId, locationId } = act;
  const { sentence, tone, more } = describeAct(act);
  const from = 'source' in act && act.source !== null ? [`from ${act.source}`] : [];
  return (
    <li class={`audit-${tone}`}>
      <Time at={act.at} />
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
