import { LIVE_WAYS } from '../core/domain/live-message.ts';
import {
  BACKGROUND_WORK,
  FOLLOW_CLOSES,
  FOLLOW_REFUSALS,
  NOTICE_OUTCOMES,
  AUTH_ENDPOINTS,
  FAILED_AUTH_OUTCOMES,
} from '../core/domain/observed.ts';
import { errorType, type EventReadings } from './event.ts';

/** Upper bounds of histogram buckets in seconds. A member notices no delay below the first bound of `FOLLOW_LAG`. */
const LAG = [0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600];
const FOLLOW_LAG = [0.05, 0.1, 0.15, 0.25, 0.5, 1, 2, 5, 10];

/** Events of live messages, operators, members' streams and background work. */
export const serviceEvents = {
  'live message': {
    metrics(make) {
      const messages = make.counter('live_messages_total', 'Messages to the status topic or to STATUS_WEBHOOK_URL.', {
        outcome: ['published', 'failed'],
        way: LIVE_WAYS,
      });
      const about = 'From the commit of a message until the topic or the receiver has it.';
      const lag = make.histogram('live_lag_seconds', about, LAG, { way: LIVE_WAYS });
      return ({ outcome, way, appliedAt }) => {
        messages(outcome, way);
        if (outcome === 'published') lag(Math.max(0, make.now().getTime() - Date.parse(appliedAt)) / 1_000, way);
      };
    },
    spans(observed, { places: { broker, topic } }) {
      const { serviceOrderId, sequence, way, outcome, spanId: id, milliseconds } = observed;
      const failed = outcome === 'failed';
      const ofTopic = {
        ...broker,
        'messaging.system': 'gcp_pubsub',
        'messaging.operation.type': 'send',
        'messaging.operation.name': 'send',
        'messaging.destination.name': topic,
        'messaging.gcp_pubsub.message.ordering_key': serviceOrderId,
      };
      const attributes = {
        ...(way === 'topic' ? ofTopic : { 'http.request.method': 'POST' }),
        ...(failed
          ? { 'error.type': errorType(observed.error) }
          : observed.messageId !== undefined && { 'messaging.message.id': observed.messageId }),
        'expediter.sequence': sequence,
        'expediter.outcome': outcome,
      };
      const name = `send ${way === 'topic' ? topic : 'status webhook'}`;
      return [[serviceOrderId, { name, kind: 'PRODUCER', milliseconds, attributes, failed, id }]];
    },
  },

  pause: {
    log: (log, { what: _what, ...about }) => log.info(about, 'a pause of a location began or ended'),
  },

  kitchen: {
    log: (log, { what: _what, ...about }) => log.info(about, 'the availability of a kitchen changed'),
  },

  notice: {
    log(log, { what: _what, ...about }) {
      const level = about.outcome === 'failed' || about.outcome === 'gave_up' ? 'warn' : 'info';
      log[level](about, 'notice to a restaurant');
    },
    metrics: (make) =>
      make.countEach('notices_total', 'Messages to contacts of restaurants; failed were retried.', {
        via: ['email', 'webhook'],
        outcome: NOTICE_OUTCOMES,
      }),
  },

  'access revoked': {
    log: (log, { what: _what, ...about }) => log.warn(about, 'a restaurant withdrew our access to its POS'),
  },

  follow: {
    log(log, observed, limited) {
      if (observed.action === 'close' && observed.reason === 'slow') {
        limited('warn', 'more follow streams closed whose clients do not read, not logged individually', () =>
          log.warn({}, 'follow stream closed: its client does not read'),
        );
      } else if (observed.action === 'refuse') {
        const { reason, detail } = observed;
        // These refusals need attention. Anybody can cause the other ones, so both kinds have separate limits.
        if (reason === 'no_keys' || reason === 'too_many' || reason === 'error') {
          limited('warn', 'more follow requests could not be served, not logged individually', () =>
            log.warn({ reason, detail }, 'follow request could not be served'),
          );
        } else {
          limited('info', 'more follow requests refused, not logged individually', () =>
            log.info({ reason, detail }, 'follow request refused'),
          );
        }
      }
    },
    metrics(make) {
      let streams = 0;
      make.gauge('expediter_follow_streams', 'Open streams to members.', [], (set) => set(streams));
      const opened = make.counter('follow_opened_total', 'Opened streams to members.', {});
      const refused = make.counter('follow_refused_total', 'Refused requests to follow an order, by reason.', {
        reason: FOLLOW_REFUSALS,
      });
      const closed = make.counter('follow_closed_total', 'Closed streams to members, by reason.', {
        reason: FOLLOW_CLOSES,
      });
      const help = "From a message's commit to its write into a stream.";
      const lag = make.histogram('follow_lag_seconds', help, FOLLOW_LAG, {});
      return (observed) => {
        if (observed.action === 'deliver') lag(observed.milliseconds / 1_000);
        else if (observed.action === 'refuse') refused(observed.reason);
        else if (observed.action === 'open') {
          streams += 1;
          opened();
        } else {
          streams -= 1;
          closed(observed.reason);
        }
      };
    },
  },

  'failed authentication': {
    metrics: (make) =>
      make.countEach('failed_authentications_total', 'Failed authentications; slowed were rejected unchecked.', {
        endpoint: AUTH_ENDPOINTS,
        outcome: FAILED_AUTH_OUTCOMES,
      }),
  },

  'background work': {
    log(log, observed) {
      if (observed.outcome === 'failed')
        log.warn({ err: observed.error }, `${observed.work} failed; it runs again at its next interval`);
    },
    metrics: (make) =>
      make.countEach('background_work_total', 'Rounds of background work.', {
        work: BACKGROUND_WORK,
        outcome: ['done', 'failed'],
      }),
  },
} satisfies Partial<EventReadings>;
