import { useState } from 'preact/hooks';
import { AskButton } from '../parts/ask-button.tsx';
import { ReplayDialog } from '../webhooks/replay-dialog.tsx';
import { Badge } from '../parts/badge.tsx';
import { duration } from '../parts/duration.ts';
import { may } from '../may.ts';
import { Details, WithCode } from '../parts/said.tsx';
import { Time } from '../parts/time.tsx';
import type { ShownOrder } from '../wire.ts';
import { pageOf } from '../parts/page-of.ts';
import { essentials, type Essential } from './essentials.ts';
import { locationOf } from './location-of.ts';
import { foldTries } from './fold-tries.ts';
import { storyLines, type Line } from './story-lines.ts';

/** Lines shown at first. A POS that repeats its webhooks can cause thousands. */
const NEWEST = 300;
/** Waits from this length on are highlighted. */
const LONG_MS = 10_000;
/** Lines that are shown less prominently. */
const QUIET: readonly Line['what'][] = ['call began', 'published', 'replay', 'webhook'];

/** What happened, oldest first: new lines appear at the end, and nothing moves while the operator reads. */
export function Timeline({ story, onReplayed }: { story: ShownOrder; onReplayed: () => void }) {
  const [replaying, setReplaying] = useState<string>();
  const [isWhole, setWhole] = useState(false);
  const all = storyLines(story);
  const canReplay = may('operator', locationOf(story));
  const lines: Essential[] = isWhole ? all : essentials(foldTries(all), story).slice(-NEWEST);
  return (
    <section class="sheet" aria-labelledby="orders-story">
      <div class="apart orders-story-head">
        <h2 id="orders-story">Timeline</h2>
        {(isWhole || lines.length < all.length) && (
          <button type="button" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
            {isWhole ? 'Show fewer steps' : `Show all ${all.length} steps`}
          </button>
        )}
      </div>
      <ol class="orders-story">
        {lines.map((line) => (
          <StoryLine key={line.key} line={line} onReplay={canReplay ? setReplaying : undefined} />
        ))}
      </ol>
      {replaying !== undefined && (
        <ReplayDialog webhookId={replaying} onReplayed={onReplayed} onClose={() => setReplaying(undefined)} />
      )}
    </section>
  );
}

type AboutLine = { line: Essential; onReplay: ((webhookId: string) => void) | undefined };

/** @param about.onReplay undefined without permission */
function StoryLine({ line, onReplay }: AboutLine) {
  const { at, what, waitMs, tone, sentence, more, details, webhookId, isConflict, notified } = line;
  return (
    <li class={`orders-line ${tone}${QUIET.includes(what) ? ' quiet' : ''}`} data-what={what}>
      <span class="orders-when">
        <Time at={at} />
      </span>
      <span class={`orders-wait${waitMs !== undefined && waitMs >= LONG_MS ? ' long' : ''}`}>
        {waitMs !== undefined && (
          <>
            <span aria-hidden="true">+</span>
            <span class="unseen">after </span>
            {duration(waitMs)}
          </>
        )}
      </span>
      <div class="orders-what">
        <span class="orders-said">{sentence}</span> {isConflict && <Badge tone="bad">conflict</Badge>}{' '}
        {more.length > 0 && (
          <span class="orders-more">
            <WithCode text={more.join(' · ')} />
          </span>
        )}
        {details && <Details>{details}</Details>}
        {notified !== undefined && (
          <span class={`orders-notified ${notified.tone}`}>
            <span>{notified.sentence}</span>{' '}
            {notified.more.length > 0 && <span class="orders-more">{notified.more.join(' · ')}</span>}
          </span>
        )}
        {webhookId !== undefined && what !== 'status' && (
          <span class="orders-links">
            <a href={pageOf.webhook(webhookId)}>{what === 'replay' ? 'the replay' : 'the webhook'}</a>
            {what === 'webhook' && onReplay && (
              <AskButton aria-label="Replay this webhook" onClick={() => onReplay(webhookId)}>
                Replay
              </AskButton>
            )}
          </span>
        )}
      </div>
    </li>
  );
}
