import { LocationLink } from '../parts/location-field.tsx';
import { NAMED } from '../parts/names.ts';
import { OrderName } from '../parts/order-name.tsx';
import { Details } from '../parts/said.tsx';
import { Time } from '../parts/time.tsx';
import { pageOf } from '../parts/page-of.ts';
import type { ListedAction, RecordedAction } from '../wire.ts';
import './audit.css';
import { describeAction } from '../../src/core/domain/describe-action.ts';
import { groupActions, timesOf, type ActionGroup } from './group-actions.ts';

type Shown = RecordedAction | ListedAction;

/** Actions, one per line, with links. Many of one kind are one line. @param at the page's location, without a link */
export function Acts({ actions, at, label }: { actions: readonly Shown[]; at?: string; label: string }) {
  return (
    <ul class="audit-actions" aria-label={label}>
      {groupActions<Shown>(actions).map((group) =>
        group.length === 1 ? (
          <Action key={group[0].auditId} action={group[0]} at={at} />
        ) : (
          <Group key={group.at(-1)?.auditId} group={group} at={at} />
        ),
      )}
    </ul>
  );
}

function Group({ group, at }: { group: ActionGroup<Shown>; at: string | undefined }) {
  const [newest] = group;
  const { sentence } = describeAction(newest, NAMED);
  const worst =
    ['bad', 'warn'].find((tone) => group.some((each) => describeAction(each, NAMED).tone === tone)) ?? 'plain';
  const times = timesOf(group);
  return (
    <li class="audit-group">
      <details>
        <summary>
          <Time at={newest.at} />
          <span>
            <span class={`audit-said ${worst}`}>{sentence}</span>
            {times > 1 && `, ${times} times`}
          </span>
        </summary>
        <ul class="audit-actions">
          {group.map((action) => (
            <Action key={action.auditId} action={action} at={at} />
          ))}
        </ul>
      </details>
    </li>
  );
}

function Action({ action, at }: { action: Shown; at: string | undefined }) {
  const { serviceOrderId, callOutCode, webhookId, locationId } = action;
  const { sentence, tone, more, details } = describeAction(action, NAMED);
  const from = 'source' in action && action.source !== null ? [`from ${action.source}`] : [];
  return (
    <li>
      <Time at={action.at} />
      <div>
        <span class={`audit-said ${tone}`}>{sentence}</span>{' '}
        <span class="audit-more">{[...more, ...from].join(' · ')}</span>
        {details !== null && <Details>{details}</Details>}
      </div>
      <div class="row audit-links">
        {serviceOrderId !== null && (
          <a href={pageOf.order(serviceOrderId)}>
            order <OrderName id={serviceOrderId} code={callOutCode} />
          </a>
        )}
        {webhookId !== null && <a href={pageOf.webhook(webhookId)}>the webhook</a>}
        {locationId !== null && locationId !== at && <LocationLink id={locationId} />}
      </div>
    </li>
  );
}
