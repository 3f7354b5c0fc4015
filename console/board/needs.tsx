import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { announce } from '../parts/announce.ts';
import { Badge } from '../parts/badge.tsx';
import { ShortId } from '../parts/short-id.tsx';
import { Ago } from '../parts/time.tsx';
import type { Filter } from './create-board.ts';
import { attention, board, follow, isThere } from './live-board.ts';
import { needsOf, type Need, type NeedGroup } from './needs-of.ts';
import { aside, bringBack, putAside, reloadAside } from './put-aside.ts';

/** How many needs of a group are shown at first, and after “All”. */
const FEW = 3;
const MANY = 100;
/** Interval of announcements, so that simultaneous needs are announced together. */
const ANNOUNCE_EVERY_MS = 2_000;

export function Needs({ filter }: { filter: Filter }) {
  follow('in_doubt', 'held', 'failed', 'left_out', 'counts');
  const titleId = useId();
  const isPutAside = (key: string): boolean => key in aside.value;
  const groups = needsOf(board.lists, attention.value, filter, isPutAside);
  const all = groups.flatMap(({ needs }) => needs);
  const isFiltered = filter.location !== '' || filter.integration !== '' || filter.text !== '';
  useEffect(() => {
    addEventListener('storage', reloadAside);
    return () => removeEventListener('storage', reloadAside);
  }, []);
  useAnnounced(all);

  return (
    <section class="needs" aria-labelledby={titleId}>
      <h2 id={titleId} class={all.length === 0 ? 'unseen' : 'needs-title'}>
        Needs a person
      </h2>
      {all.length === 0 && <Calm isFiltered={isFiltered} />}
      {groups
        .filter(({ isWide }) => isWide)
        .map((group) => (
          <Group key={group.title} group={group} />
        ))}
      {groups.some(({ isWide }) => !isWide) && (
        <div class="needs-groups">
          {groups
            .filter(({ isWide }) => !isWide)
            .map((group) => (
              <Group key={group.title} group={group} />
            ))}
        </div>
      )}
    </section>
  );
}

/** The text if nothing needs a person. Until everything is loaded, it says only that the page is loading. */
function Calm({ isFiltered }: { isFiltered: boolean }) {
  if (!isThere.value || attention.value === undefined) return <p class="needs-none faint">Loading …</p>;
  if (!isFiltered && board.counts.open + board.counts.done + board.counts.failed === 0) {
    return (
      <p class="needs-none">
        No orders today. In a new installation, configure <a href="/console/locations">a location</a> and test its
        connection. Its next order appears here at once.
      </p>
    );
  }
  return (
    <p class="needs-none good">
      <span aria-hidden="true">✓ </span>
      {isFiltered ? 'Nothing in this filter needs a person.' : 'Nothing needs a person.'}
    </p>
  );
}

function Group({ group: { title, tone, hint, isWide, needs, aside: past, count } }: { group: NeedGroup }) {
  const titleId = useId();
  const [isAll, setAll] = useState(false);
  const [isPastShown, setPastShown] = useState(false);
  const shown = needs.slice(0, isAll ? MANY : FEW);
  return (
    <section
      class={`needs-group ${needs.length === 0 ? 'looked-at' : tone}${isWide ? ' wide' : ''}`}
      aria-labelledby={titleId}
    >
      <h3 id={titleId} title={hint}>
        {title} <Badge tone={needs.length === 0 ? 'plain' : tone}>{count.toLocaleString('en')}</Badge>
      </h3>
      {needs.length > 0 && <p class="needs-hint">{hint}</p>}
      <List
        needs={shown}
        action={past && { name: 'Put aside', mark: '✕', do: (need) => putAside([need.key]) }}
        labelledBy={titleId}
      />
      <p class="needs-more">
        {needs.length > FEW && (
          <button type="button" class="quiet" aria-expanded={isAll} onClick={() => setAll(!isAll)}>
            {isAll ? 'Fewer' : `All ${needs.length.toLocaleString('en')}`}
          </button>
        )}
        {isAll && needs.length > MANY && (
          <span class="faint">Only the first {MANY} are shown. Use the filter to find others.</span>
        )}
        {past !== undefined && needs.length > FEW && (
          <button type="button" class="quiet" onClick={() => putAside(needs.map(({ key }) => key))}>
            Put all aside
          </button>
        )}
        {past !== undefined && past.length > 0 && (
          <button type="button" class="quiet" aria-expanded={isPastShown} onClick={() => setPastShown(!isPastShown)}>
            {isPastShown ? 'Hide' : 'Show'} {past.length} put aside
          </button>
        )}
      </p>
      {isPastShown && past !== undefined && (
        <List
          needs={past.slice(0, MANY)}
          action={{ name: 'Bring back', mark: '↩', do: (need) => bringBack([need.key]) }}
          labelledBy={titleId}
        />
      )}
    </section>
  );
}

function List({
  needs,
  action,
  labelledBy,
}: {
  needs: Need[];
  action: { name: string; mark: string; do: (need: Need) => void } | undefined;
  labelledBy: string;
}) {
  if (needs.length === 0) return null;
  return (
    <ul aria-labelledby={labelledBy}>
      {needs.map((need) => (
        <li key={need.key}>
          <a class="need" href={need.href} title={need.detail}>
            <span class="need-name">{need.isOrder ? <ShortId id={need.name} /> : need.name}</span>{' '}
            <span class="need-since">
              <Ago at={new Date(need.since).toISOString()} isBrief />
            </span>{' '}
            <span class="need-brief">
              {need.brief.map((each) => (
                <span key={each}>{each} </span>
              ))}
            </span>
          </a>
          {action !== undefined && (
            <button
              type="button"
              class="quiet need-action"
              title={action.name}
              aria-label={`${action.name}: ${need.name}`}
              onClick={() => action.do(need)}
            >
              <span aria-hidden="true">{action.mark}</span>
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

function isMore(keys: ReadonlySet<string>, than: ReadonlySet<string>): boolean {
  return [...keys].some((key) => !than.has(key));
}

/** Shows the number of needs in the page's title, and announces new ones. */
function useAnnounced(needs: Need[]): void {
  const count = needs.length;
  useEffect(() => {
    document.title = count === 0 ? 'Board · The pass' : `(${count}) Board · The pass`;
  }, [count]);

  const latest = useRef<Need[] | undefined>(undefined);
  useEffect(() => {
    if (isThere.value && attention.value !== undefined) latest.current = needs;
  });
  useEffect(() => {
    let announced: Set<string> | undefined;
    const timer = setInterval(() => {
      if (latest.current === undefined) return;
      const keys = new Set(latest.current.map(({ key }) => key));
      if (announced !== undefined && isMore(keys, announced)) {
        announce(`${keys.size} ${keys.size === 1 ? 'thing needs' : 'things need'} a person`);
      } else if (announced !== undefined && announced.size > 0 && keys.size === 0)
        announce('Nothing needs a person any more');
      announced = keys;
    }, ANNOUNCE_EVERY_MS);
    return () => clearInterval(timer);
  }, []);
}
