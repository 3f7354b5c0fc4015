import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ask, query } from '../api.ts';
import { due } from '../board/due.ts';
import { ticketOf } from '../board/ticket-of.ts';
import { may } from '../may.ts';
import { Badge } from '../parts/badge.tsx';
import { now } from '../parts/clock.ts';
import { CloseDialog, closeDialog, Dialog } from '../parts/dialog.tsx';
import { Text } from '../parts/form.tsx';
import { LocationName } from '../parts/location-field.tsx';
import { locationName } from '../parts/names.ts';
import { OrderName } from '../parts/order-name.tsx';
import { pageOf } from '../parts/page-of.ts';
import { showMoney } from '../parts/show-money.ts';
import { ShortId } from '../parts/short-id.tsx';
import { Ago } from '../parts/time.tsx';
import { MEMBER_STATE_TONES, OUTCOME_TONES, PLACEMENT_TONES, words } from '../parts/tones.ts';
import type { Found } from '../wire.ts';
import { hintFor } from './hint-for.ts';
import { isLikeMember } from './is-like-member.ts';
import './search.css';

/** Time after the last key before a search starts. */
const PAUSE_MS = 200;

/** Finds orders, locations and webhooks. With the role `member-data`, also the orders of a member. */
export function SearchDialog({ onClose }: { onClose: () => void }) {
  const results = useRef<HTMLDivElement>(null);
  const id = useId();
  const [text, setText] = useState('');
  const typed = text.trim();
  /** The text of a search for a member, which a person starts: each one is logged. */
  const [member, setMember] = useState<string>();
  const field = useRef<HTMLInputElement>(null);
  const { found, problem } = useFound(member ?? typed, member !== undefined);
  const hint = found && hintFor(found, member !== undefined);
  const mayAsk = may('member-data', { anywhere: true });
  const isOffered = mayAsk && member === undefined && (isLikeMember(typed) || (found && !hasSome(found)));
  useLayoutEffect(() => field.current?.focus(), []);

  const onKeyDown = (event: KeyboardEvent): void => {
    const links = [...(results.current?.querySelectorAll<HTMLElement>('a, button') ?? [])];
    const at = links.indexOf(document.activeElement as HTMLElement);
    if (event.key === 'ArrowDown') links[Math.min(at + 1, links.length - 1)]?.focus();
    else if (event.key === 'ArrowUp' && at >= 0) (links[at - 1] ?? field.current)?.focus();
    else return;
    event.preventDefault();
  };
  const openFirst = (): void => results.current?.querySelector<HTMLElement>('a, button')?.click();
  const isAsked = useRef(false);
  // Enter opens the first result, also if it is pressed before the results are there.
  const submit = (event: Event): void => {
    event.preventDefault();
    if (found === undefined) isAsked.current = true;
    else openFirst();
  };
  useEffect(() => {
    if (found === undefined || !isAsked.current) return;
    isAsked.current = false;
    openFirst();
  }, [found]);
  return (
    <Dialog title="Search" class="search" onClose={onClose} onKeyDown={onKeyDown}>
      <form onSubmit={submit}>
        <Text
          id={`${id}-text`}
          label={`Code, order id, POS id, location or webhook id${mayAsk ? ', or the name, telephone number or email of a member' : ''}`}
          hint={mayAsk ? 'Of a name, enter whole words, then the end of the number: Lovelace 5678.' : undefined}
          inputRef={field}
          type="search"
          value={text}
          onWrite={(to) => {
            setText(to);
            setMember(undefined);
          }}
        />
      </form>
      {/* eslint-disable-next-line jsx-a11y/no-static-element-interactions, jsx-a11y/click-events-have-key-events */}
      <div
        ref={results}
        id={`${id}-results`}
        aria-live="polite"
        onClick={({ target, currentTarget }) =>
          (target as HTMLElement).closest('a') !== null && closeDialog({ currentTarget })
        }
      >
        {problem !== undefined && <p class="problem">{problem}</p>}
        {member !== undefined && <p>Orders of a member: {member}. This search is logged.</p>}
        {found !== undefined && !(isOffered && !hasSome(found)) && (
          <>
            <Results found={found} />
            {hint !== undefined && <p>{hint}</p>}
          </>
        )}
        {!mayAsk && isLikeMember(typed) && found && !hasSome(found) && (
          <p>To search for a member, you need the role member-data.</p>
        )}
        {isOffered && (
          <p>
            <button type="button" onClick={() => setMember(typed)}>
              Search the orders of a member: {typed}, logged
            </button>
          </p>
        )}
      </div>
      <CloseDialog />
    </Dialog>
  );
}

const hasSome = ({ orders, locations = [], webhooks = [] }: Found): boolean =>
  orders.length + locations.length + webhooks.length > 0;

/** Searches for a text. */
function useFound(text: string, ofMember: boolean): { found?: Found | undefined; problem?: string } {
  const [result, setResult] = useState<{ found?: Found; problem?: string }>({});
  useEffect(() => {
    setResult({});
    if (text === '') return undefined;
    const giveUp = new AbortController();
    const { signal } = giveUp;
    // The text may be about a member, so it must not be in a URL.
    const search = (): Promise<Found> =>
      ofMember
        ? ask('POST', '/search/member', { body: { text }, signal })
        : ask('POST', '/search', { body: { q: text }, signal });
    const timer = setTimeout(
      () =>
        void search().then(
          (found) => !signal.aborted && setResult({ found }),
          ({ message }: Error) => !signal.aborted && setResult({ problem: message }),
        ),
      ofMember ? 0 : PAUSE_MS,
    );
    return () => {
      clearTimeout(timer);
      giveUp.abort();
    };
  }, [text, ofMember]);
  return result;
}

function Results({ found }: { found: Found }) {
  const { orders, locations = [], webhooks = [] } = found;
  return (
    <ul class="lined search-results">
      {orders.map((order) => (
        <FoundOrder key={order.serviceOrderId} order={order} />
      ))}
      {locations.map(({ locationId }) => (
        <li key={locationId}>
          <a href={pageOf.location(locationId)}>
            Location <LocationName id={locationId} />
          </a>{' '}
          <a href={`/console/orders${query({ location: locationId })}`}>Its orders</a>{' '}
          <a href={`/console/webhooks${query({ location: locationId })}`}>Its webhooks</a>
        </li>
      ))}
      {webhooks.map(({ webhookId, locationId, receivedAt, outcome }) => (
        <li key={webhookId}>
          <a href={pageOf.webhook(webhookId)}>
            Webhook <ShortId id={webhookId} />
          </a>{' '}
          <span class="faint">
            {locationName(locationId)}, <Ago at={receivedAt} />
          </span>{' '}
          <Badge tone={OUTCOME_TONES[outcome]}>{outcome}</Badge>
        </li>
      ))}
    </ul>
  );
}

/** An order with what tells the orders of one member apart on the telephone. */
function FoundOrder({ order }: { order: Found['orders'][number] }) {
  const { serviceOrderId, callOutCode, locationId, placement, memberState, signalledAt, ordered } = order;
  const time = due(ticketOf(order, now.value, 0), now.value);
  const state = placement === 'sent' ? memberState : null;
  return (
    <li>
      <a href={pageOf.order(serviceOrderId)}>
        Order <OrderName id={serviceOrderId} code={callOutCode} />
      </a>{' '}
      <span class="faint">
        {locationId !== null && `${locationName(locationId)}, `}
        {ordered && `${showMoney(ordered.total, ordered.currency)}, `}
        placed <Ago at={signalledAt} />
      </span>{' '}
      <Badge tone={state === null ? PLACEMENT_TONES[placement] : MEMBER_STATE_TONES[state]}>
        {words(state ?? placement)}
      </Badge>{' '}
      {time && <Badge tone={time.tone}>{time.words}</Badge>}
    </li>
  );
}
