import type { Log } from '../core/domain/log.ts';
import type {
  CancellationObserved,
  LookObserved,
  Observe,
  Observed,
  OldTokenObserved,
  PlacementObserved,
  SignalObserved,
  SpillObserved,
  WebhookObserved,
  WebhookRefused,
} from '../core/domain/observed.ts';
import { limitLines } from './limit-lines.ts';

/** Logs one line per journey, and per failed piece of work: its ids and its time, nothing of its payload. */
export function logJourneys(log: Log): Observe {
  const refused = limitLines((more) => log.info({ more }, 'webhooks refused, beside those that were logged'));
  const old = limitLines((more) => log.warn({ more }, 'webhooks with an old token, beside those that were logged'));
  const failing = limitLines((more) => log.error({ more }, 'webhooks not committed, beside those that were logged'));
  const strange = limitLines((more) => log.warn({ more }, 'pushes refused, beside those that were logged'));
  const notKept = limitLines((more) => log.warn({ more }, 'webhooks not kept, beside those that were logged'));
  const spilled = limitLines((more) => log.warn({ more }, 'webhooks spilled, beside those that were logged'));
  const undrained = limitLines((more) => log.error({ more }, 'messages not drained, beside those that were logged'));
  const unanswered = limitLines((more) => log.warn({ more }, 'questions without an answer, beside those logged'));
  const unfollowed = limitLines((more) => log.info({ more }, 'followers refused, beside those that were logged'));
  const turnedAway = limitLines((more) => log.warn({ more }, 'followers turned away, beside those that were logged'));
  const slow = limitLines((more) => log.warn({ more }, 'followers that do not read, beside those that were logged'));
  return (observed) => {
    if (observed.what === 'webhook') {
      if (observed.webhookId === null) notKept(() => logWebhook(log, observed));
      else logWebhook(log, observed);
    } else if (observed.what === 'webhook refused') {
      if (observed.outcome === 'unauthorized') refused(() => logRefused(log, observed));
      else if (observed.error !== undefined) failing(() => logRefused(log, observed));
    } else if (observed.what === 'old token') old(() => logOldToken(log, observed));
    else if (observed.what === 'spill') {
      // A refused one is logged as a webhook that was not committed.
      if (observed.outcome === 'spilled') spilled(() => logSpilled(log, observed));
    } else if (observed.what === 'drain') {
      if (observed.outcome !== 'known') undrained(() => logUndrained(log, observed.outcome, observed.error));
    } else if (observed.what === 'signal') {
      if (observed.outcome === 'unauthorized') strange(() => logSignal(log, observed));
      else logSignal(log, observed);
    } else if (observed.what === 'placement') logPlacement(log, observed);
    else if (observed.what === 'cancellation') logCancellation(log, observed);
    else if (observed.what === 'look') logLook(log, observed);
    else if (observed.what === 'ask') {
      if (observed.outcome === 'failed') unanswered(() => logAsk(log, observed));
      else if (observed.outcome === 'told_more') logAsk(log, observed);
    } else if (observed.what === 'conflict') logConflict(log, observed);
    else if (observed.what === 'left out') {
      const { what: _what, ...about } = observed;
      log.warn(about, 'order read without what cannot be used');
    } else if (observed.what === 'POS pause') {
      const { what: _what, ...about } = observed;
      log.info(about, 'POS');
    } else if (observed.what === 'follow') {
      if (observed.did === 'close' && observed.why === 'slow') {
        slow(() => log.warn({}, 'follower dropped: it does not read'));
      } else if (observed.did === 'refuse') {
        // Anybody can cause the others, and they should not hide these.
        const { why, detail } = observed;
        if (why === 'no_keys' || why === 'too_many' || why === 'error') {
          turnedAway(() => log.warn({ why, detail }, 'follower turned away'));
        } else unfollowed(() => log.info({ why, detail }, 'follower refused'));
      }
    } else if (observed.what === 'background work' && observed.outcome === 'failed') {
      log.warn({ err: observed.error }, `${observed.work} failed; comes again`);
    }
  };
}

function logWebhook(log: Log, observed: WebhookObserved): void {
  const { requestId, trace, locationId, integration, webhookId, outcome, serviceOrderIds: ids, dropped } = observed;
  // What is undefined is not in the line.
  const about = {
    reqId: requestId,
    trace,
    locationId,
    integration,
    webhookId,
    outcome,
    milliseconds: Math.round(observed.milliseconds),
    // Most webhooks are about one order, and people search for its id.
    serviceOrderId: ids.length > 1 ? undefined : ids[0],
    serviceOrderIds: ids.length > 1 ? ids : undefined,
    why: dropped?.reason,
    cause: dropped?.cause,
  };
  if (outcome !== 'dropped') log.info(about, 'webhook');
  else log.warn(about, webhookId === null ? 'webhook dropped, and not kept' : 'webhook dropped');
}

function logRefused(log: Log, { requestId, trace, outcome, locationId, milliseconds, error }: WebhookRefused): void {
  const about = { reqId: requestId, trace, outcome, milliseconds: Math.round(milliseconds) };
  // The URL may contain anything, so it is not logged.
  if (outcome === 'unauthorized') log.info(about, 'webhook refused');
  else log.error({ ...about, locationId, err: error }, 'webhook not committed');
}

function logOldToken(log: Log, { requestId, what: _what, error, ...observed }: OldTokenObserved): void {
  const about = { reqId: requestId, ...observed, milliseconds: Math.round(observed.milliseconds), err: error };
  log.warn(about, observed.webhookId === null ? 'old token, webhook not kept' : 'old token, webhook kept');
}

function logSpilled(
  log: Log,
  { requestId, trace, locationId, integration, webhookId, ...observed }: SpillObserved,
): void {
  const milliseconds = Math.round(observed.milliseconds);
  log.warn(
    { reqId: requestId, trace, locationId, integration, webhookId, milliseconds, err: observed.why },
    'webhook spilled',
  );
}

function logUndrained(log: Log, outcome: 'unopened' | 'put_back', error: unknown): void {
  if (outcome === 'put_back') log.warn({ err: error }, 'a spilled webhook could not be committed; comes again');
  else log.error({ err: error }, 'a spilled webhook cannot be opened; goes to the dead-letter topic in the end');
}

function logSignal(log: Log, observed: SignalObserved): void {
  const { requestId, trace, outcome, serviceOrderId, messageId, why } = observed;
  const about = { reqId: requestId, trace, outcome, milliseconds: Math.round(observed.milliseconds) };
  if (outcome === 'poison') log.warn({ ...about, messageId, why }, 'poison signal acknowledged');
  else if (outcome === 'unauthorized') log.warn({ ...about, why }, 'push refused');
  else if (outcome === 'not_recorded')
    log.error({ ...about, serviceOrderId, err: observed.error }, 'push not recorded');
  else log.info({ ...about, serviceOrderId, messageId }, 'signal');
}

function logPlacement(log: Log, observed: PlacementObserved): void {
  const { outcome, serviceOrderId, locationId, integration, milliseconds, problem, cause } = observed;
  const about = {
    serviceOrderId,
    locationId,
    integration,
    outcome,
    milliseconds: milliseconds === undefined ? undefined : Math.round(milliseconds),
    sinceSignalMs: Math.round(observed.sinceSignalMs),
    problem,
    cause,
  };
  if (outcome === 'sent') log.info(about, 'order sent');
  else if (outcome === 'withdrawn') log.info(about, 'order withdrawn: it was cancelled before it was sent');
  else if (outcome === 'waiting') log.info(about, 'order not placed yet; tries again');
  else if (outcome === 'failed') log.warn(about, 'order failed');
  else if (cause?.code === 'location_paused_by_pos') log.info(about, 'order waits: its POS takes none now');
  else if (outcome === 'held') log.error(about, 'order held: needs an operator');
  else if (!observed.forOperator) log.warn(about, 'in doubt: the POS may have the order');
  else log.error(about, 'in doubt: an operator must say whether the POS has the order');
}

function logCancellation(log: Log, { what: _what, ...about }: CancellationObserved): void {
  const { outcome } = about;
  if (outcome === 'by_phone') log.error(about, 'cancel by telephone: an operator must call the restaurant');
  else if (outcome === 'held') log.error(about, 'not cancelled yet: needs an operator');
  else if (outcome === 'in_doubt') log.warn(about, 'in doubt: the POS may have cancelled the order');
  else if (outcome === 'refused') log.warn(about, 'not cancelled: the order goes on, or was over');
  else log.info(about, 'cancellation');
}

function logLook(log: Log, { what: _what, ...about }: LookObserved): void {
  const { outcome } = about;
  if (outcome === 'cancelled') log.info(about, 'the platform has cancelled an order');
  else if (outcome === 'changed') log.info(about, 'the platform has changed an order: the newest is placed');
  else if (outcome === 'changed_after_sent') log.warn(about, 'the platform has changed an order that its POS has');
  else if (outcome === 'given_up') log.error(about, 'a signalled order could not be read again: it goes on as it was');
}

function logAsk(log: Log, observed: Extract<Observed, { what: 'ask' }>): void {
  const { serviceOrderId, locationId, integration, outcome } = observed;
  const about = { serviceOrderId, locationId, integration, milliseconds: Math.round(observed.milliseconds) };
  if (outcome === 'failed')
    log.warn({ ...about, err: observed.error }, 'the POS could not be asked; asked again later');
  else log.warn(about, 'the POS was asked, and said more than its webhooks: one is missing');
}

function logConflict(log: Log, { what: _what, ...about }: Extract<Observed, { what: 'conflict' }>): void {
  log.error(about, 'conflict: a person should look');
}
