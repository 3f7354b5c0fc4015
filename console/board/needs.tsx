import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { announce } from '../parts/announce.ts';
import { CaseDialog } from './case-dialog.tsx';
import { alertTo, saysOf } from './alerts.ts';
import { Badge } from '../parts/badge.tsx';
import { Holder } from '../parts/case.tsx';
import { tenSeconds } from '../parts/clock.ts';
import { knownLocations } from '../parts/names.ts';
import { OrderName } from '../parts/order-name.tsx';
import { Ago } from '../parts/time.tsx';
import { NEEDY, type Filter } from './create-board.ts';
import { attention, board, follow, isThere } from './live-board.ts';
import { isSilent, needsOf, type Need, type NeedGroup } from './needs-of.ts';

/** How many needs of a group are shown at first, and after “All”. */
const FEW = 3;
const MANY = 100;
/** Interval of announcements, so that simultaneous needs are announced together. */
const ANNOUNCE_EVERY_MS = 2_000;

/** @param about.children buttons next to the title */
export function Needs({ filter, children }: { filter: Filter; children: ComponentChildren }) {
  follow(...NEEDY, 'counts');
  const titleId = useId();
  const [opened, setOpened] = useState<Need>();
  const groups = needsOf(board.lists, attention.value, filter, tenSeconds.value);
  const all = groups.flatMap(({ needs }) => needs);
  const isFiltered = filter.location !== '' || filter.integration !== '' || filter.text !== '';
  useAnnounced(all, JSON.stringify(filter));
  const showGroups = (isWide: boolean) =>
    groups
      .filter((group) => group.isWide === isWide)
      .map((group) => <Group key={group.title} group={group} onOpen={setOpened} />);

  return (
    <section class="needs" aria-labelledby={titleId}>
      <div class="apart needs-head">
        <h2 id={titleId} class={all.length === 0 ? 'unseen' : 'needs-title'}>
          Needs a person
        </h2>
        {all.length === 0 && <Calm isFiltered={isFiltered} />}
        <p class="needs-ways">{children}</p>
      </div>
      {showGroups(true)}
      {groups.some(({ isWide }) => !isWide) && <div class="needs-groups">{showGroups(false)}</div>}
      {opened?.subject !== undefined && (
        <CaseDialog
          subject={opened.subject}
          name={opened.name}
          isSilent={isSilent(opened)}
          onClose={() => setOpened(undefined)}
        />
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
      {isFiltered ? 'Nothing in this filter needs you.' : 'Nothing needs you.'}
    </p>
  );
}

type Shared = { onOpen: (need: Need) => void };

function Group({ group, onOpen }: Shared & { group: NeedGroup }) {
  const { title, tone, hint, isWide, needs, hidden, count } = group;
  const titleId = useId();
  const shared = { labelledBy: titleId, known: group.isCall ? knownLocations.value : [], onOpen };
  const [isAll, setAll] = useState(false);
  const [areHiddenShown, setHiddenShown] = useState(false);
  return (
    <section
      class={`needs-group ${needs.length === 0 ? '' : tone}${isWide ? ' wide' : ''}`}
      style={{ flexGrow: lengthOf(title, needs.slice(0, FEW)) }}
      aria-labelledby={titleId}
    >
      <h3 id={titleId}>
        {title}{' '}
        <Badge tone={needs.length === 0 ? 'plain' : tone}>
          <span translate={false}>{count.toLocaleString('en')}</span>
        </Badge>
      </h3>
      {needs.length > 0 && <p class="needs-hint">{hint}</p>}
      <List needs={needs.slice(0, isAll ? MANY : FEW)} {...shared} />
      <p class="row needs-more">
        {needs.length > FEW && (
          <button type="button" class="quiet" aria-expanded={isAll} onClick={() => setAll(!isAll)}>
            {isAll ? 'Fewer' : `All ${needs.length.toLocaleString('en')}`}
          </button>
        )}
        {isAll && needs.length > MANY && (
          <span class="faint">Only the first {MANY} are shown. Use the filter to find others.</span>
        )}
        {hidden.length > 0 && (
          <button
            type="button"
            class="quiet"
            aria-expanded={areHiddenShown}
            onClick={() => setHiddenShown(!areHiddenShown)}
          >
            {areHiddenShown ? 'Hide' : 'Show'} {hidden.length} snoozed or closed
          </button>
        )}
      </p>
      {areHiddenShown && <List needs={hidden.slice(0, MANY)} {...shared} />}
    </section>
  );
}

/** The characters that the longest line has more than the narrowest group holds. A longer line wraps. */
function lengthOf(title: string, needs: readonly Need[]): number {
  const lines = needs.flatMap(({ name, code, brief }) => [`${code ?? name} 99 min`, ...brief]);
  return Math.min(12, Math.max(1, ...[`${title} 9,999`, ...lines].map(({ length }) => length - 16)));
}

type About = Shared & { needs: Need[]; known: typeof knownLocations.value; labelledBy: string };

function List({ needs, known, onOpen, labelledBy }: About) {
  const phoneOf = ({ subject }: Need): string | null | undefined =>
    known.find(({ locationId }) => locationId === subject?.locationId)?.phone;
  if (needs.length === 0) return null;
  return (
    <ul aria-labelledby={labelledBy}>
      {needs.map((need) => (
        <li key={need.key}>
          <a class="need" href={need.href} title={need.detail}>
            <span class="need-name">
              {need.subject?.kind === 'order' ? <OrderName id={need.subject.id} code={need.code ?? null} /> : need.name}
            </span>{' '}
            <span class="need-since">
              <Ago at={new Date(need.since).toISOString()} isBrief />
            </span>{' '}
            <span class="need-brief">
              {need.taken !== undefined && (
                <span>
                  <Holder {...need.taken} what="it" />{' '}
                </span>
              )}
              {need.brief.map((each) => (
                <span key={each}>{each} </span>
              ))}
            </span>
          </a>
          {need.subject !== undefined && (
            <button
              type="button"
              class="quiet need-action"
              title="Take, hand over, snooze, close"
              aria-label={`Case of ${need.name}`}
              onClick={() => onOpen(need)}
            >
              <span aria-hidden="true">⋯</span>
            </button>
          )}
          {phoneOf(need) && (
            <a class="need-call" href={`tel:${phoneOf(need)}`}>
              Call the restaurant: {phoneOf(need)}
            </a>
          )}
        </li>
      ))}
    </ul>
  );
}

/** Shows the number of needs in the page's title, and announces new ones, also by alerts if they are on. */
function useAnnounced(needs: Need[], filter: string): void {
  const count = needs.length;
  useEffect(() => {
    document.title = count === 0 ? 'Board · The pass' : `(${count}) Board · The pass`;
  }, [count]);

  const latest = useRef<Need[] | undefined>(undefined);
  useEffect(() => {
    if (isThere.value && attention.value !== undefined) latest.current = needs;
  });
  useEffect(() => {
    let known: Set<string> | undefined;
    latest.current = undefined;
    const timer = setInterval(() => {
      const now = latest.current;
      if (now === undefined) return;
      const fresh = known === undefined ? [] : now.filter(({ key }) => !known?.has(key));
      if (fresh.length > 0) announce(saysOf(fresh));
      else if (known !== undefined && known.size > 0 && now.length === 0) announce('Nothing needs you any more');
      alertTo(fresh);
      known = new Set(now.map(({ key }) => key));
    }, ANNOUNCE_EVERY_MS);
    return () => clearInterval(timer);
    // With another filter, old needs appear that are not new.
  }, [filter]);
}
