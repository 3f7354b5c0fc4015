/** A guard of the service, how to remove it, and what notices that. */
export type Mutation = {
  /** How to change the code below each mark of the guard. A mark is a comment `guard: <name>` in `src`. */
  edits: Readonly<Record<string, Edit>>;
  /** A command that passes with the guard, and must fail without it. */
  noticedBy: readonly string[];
};
type Edit = readonly [from: RegExp, to: string];

/** Finds all marks in a text. The comment of a mark is on its own line. */
export const marksIn = (text: string): string[] =>
  Array.from(text.matchAll(/^ *(?:\/\/|--) guard: (.*)$/gm), ([, mark = '']) => mark);

const COMMENT = String.raw` *(?://|--|/\*|\*).*\n`;
/** A line, the lines that are indented under it, and the line with its closing bracket. */
const CODE = String.raw`(?<indent> *).+(?:\n\k<indent> +.*)*(?:\n\k<indent>[)\]}].*)?`;

/** Edits the code below a mark. */
export function withoutGuard(text: string, mark: string, [from, to]: Edit): string {
  const marked = new RegExp(`(^ *(?://|--) guard: ${mark}\n(?:${COMMENT})*)(?!${COMMENT})(${CODE})`, 'm');
  return text.replace(marked, (_, above: string, code: string) => above + code.replace(from, to));
}

const REMOVED: Edit = [/.+/s, ''];
const NEVER: Edit = [/\bif \(/, 'if (true ? false : '];
const ALWAYS: Edit = [/\bif \(/, 'if (true ? true : '];
/** Records a call as ended before it begins. */
const ENDED: Edit = [/\) SELECT (.*) FROM/, ', ended_at) SELECT $1, now() FROM'];
const OUTBOX = `await client.query(
  \`INSERT INTO outbox (service_order_id, sequence, rank)
   SELECT DISTINCT e.service_order_id, e.sequence, a.rank
   FROM status_events e JOIN unnest($1::uuid[], $2::text[], $3::int[]) AS a(webhook_id, status, rank)
     USING (webhook_id, status)
   WHERE e.outcome = 'applied'\`,
  [arrived.map((item) => item.webhookId), arrived.map((item) => item.event.status), arrived.map((item) => item.rank)],
);
`;

const vitest = (file: string, test: string): string[] => [
  'node_modules/vitest/vitest.mjs',
  'run',
  `--project=${file.startsWith('test/process/') ? 'process' : 'tests'}`,
  file,
  '-t',
  test,
];
const chaos = (only: string, seconds = 15, ordersPerSecond = 8): string[] => [
  'tools/chaos/chaos.ts',
  '--seed=7',
  `--seconds=${seconds}`,
  '--recovery=60',
  `--orders=${ordersPerSecond}`,
  `--only=${only}`,
];

/** Seeds from 1 on, of which the simulation needs a third or less to notice that the guard is missing. */
const simulate = (seeds: number): string[] => ['tools/simulate/simulate.ts', `--seeds=${seeds}`, '--until-found'];

/** By the claim that the guard protects. */
export const MUTATIONS: Readonly<Record<string, Mutation>> = {
  'the deadline of a cancellation goes by the clock': {
    edits: { 'cancel-deadline': [/SET state = 'by_phone'/, "SET state = 'due'"] },
    noticedBy: vitest('test/core/cancellations/claim-cancellations.test.ts', 'as soon as their deadline passes'),
  },
  'a worker takes no cancellation that is given to a person': {
    edits: { 'cancel-until-deadline': REMOVED },
    noticedBy: vitest(
      'test/core/cancellations/claim-cancellations.test.ts',
      'no worker takes a cancellation past its deadline',
    ),
  },
  'a token is valid for its own location and integration only': {
    edits: { 'own-location': [/\((\w+)\?\..*(\)\s*return)/s, '($1 === undefined$2'] },
    noticedBy: chaos('foreign'),
  },
  'a follow token is valid for its own audience only': {
    edits: { 'follow-audience': NEVER },
    noticedBy: vitest('test/identity/follow-token.test.ts', 'is refused with'),
  },
  'an event is applied to orders of its own location only': {
    edits: { 'event-location': [/ AND .*/, ''], 'event-location-of-plain': [/ AND .*/, ''] },
    noticedBy: chaos('foreign'),
  },
  'no file of another installation is taken as a part of the archive': {
    edits: { 'own-parts': NEVER },
    noticedBy: vitest('test/core/retention/archive.test.ts', 'over a file of another installation'),
  },
  'no past order is dropped that the archive lacks': {
    edits: { 'archived-before-drop': NEVER },
    noticedBy: vitest('test/core/retention/archive.test.ts', 'has other orders'),
  },
  'only a higher rank moves an order': {
    edits: { 'higher-rank': [/>/, '<>'], 'higher-rank-of-plain': [/>/, '<>'] },
    noticedBy: chaos('reorder,delay'),
  },
  'the row lock on orders': {
    edits: { 'order-lock': REMOVED, 'order-lock-of-plain': REMOVED },
    noticedBy: vitest('test/core/statuses/return-journey.test.ts', '20 copies of one webhook'),
  },
  'orders are locked in the order of their keys': {
    edits: { 'locked-by-key': REMOVED, 'plain-locked-by-key': [/ORDER BY \w+/, ''] },
    noticedBy: vitest('test/core/statuses/apply-webhooks.test.ts', 'in opposite order'),
  },
  'a location is polled by one process, once a minute': {
    edits: { 'polled-once': REMOVED },
    noticedBy: vitest('test/core/polling/polling.test.ts', 'that claims it first'),
  },
  'an answer is about the order that was asked about': {
    edits: { 'answer-about-order': NEVER },
    noticedBy: vitest('test/core/polling/polling.test.ts', 'about another order'),
  },
  'the time of a missing order counts from the first answer without it': {
    edits: { 'missing-since': [/\w+ >/, 'job.age >'] },
    noticedBy: chaos('platform-null', 30),
  },
  'a 503 proves nothing if the POS does not deduplicate': {
    edits: { 'unsure-503': ALWAYS },
    noticedBy: chaos('takes-and-503', 30),
  },
  'no call begins late on a machine that was suspended': {
    edits: { 'no-late-call': NEVER },
    noticedBy: vitest('test/core/placements/forward-journey.test.ts', 'suspended before the call'),
  },
  'the lease covers a slow call': {
    edits: { 'lease-covers-call': [/\((\w+)\)/, '({ ...$1, attemptWithinS: 15 })'] },
    noticedBy: simulate(60),
  },
  'the member is notified of an order that ended before it was placed': {
    edits: { 'early-end-notified': [/$/, ' AND o.ended_at IS NULL'] },
    noticedBy: vitest('test/core/transitions/store-order-ref.test.ts', 'the member gets the reason'),
  },
  'our key on the call to the POS': {
    edits: { 'pos-key': [/,\s*'idempotency-key': \w+/, ''] },
    noticedBy: chaos('drop-answer'),
  },
  'findOrder before a retry': {
    edits: { 'ask-before-retry': [/: \w+(\s*\?)/, ': true$1'] },
    noticedBy: vitest('test/process/process.test.ts', 'to a POS with a lookup'),
  },
  'the attempt is committed before the call': {
    edits: { 'attempt-written': ENDED },
    noticedBy: vitest('test/process/process.test.ts', 'does not repeat it blindly'),
  },
  'the outbox in the same commit': {
    edits: {
      'outbox-in-commit': [
        /\$\{(applyingEvents\(.*?\))\}/,
        "${$1.replace(/(INSERT INTO outbox[^]*?WHERE )/, '$$1false AND ')}",
      ],
      'outbox-of-plain': [/outcome/, 'false AND outcome'],
      'outbox-later': [/^/, OUTBOX],
    },
    noticedBy: chaos('commit'),
  },
  'the relay stops at an order whose message failed': {
    edits: { 'stop-at-failed': REMOVED },
    noticedBy: vitest('test/core/live/status-webhook.test.ts', 'only after the one before was answered 2xx'),
  },
  'a row leaves the outbox after its message is published': {
    edits: { 'forget-when-out': [/await (.*);/s, '(void $1.catch(() => {}), undefined);'] },
    noticedBy: chaos('publish'),
  },
  'the drain': {
    edits: { drain: REMOVED },
    noticedBy: vitest('test/process/process.test.ts', 'is not ready at once'),
  },
  'an encrypted value can be decrypted in its own row only': {
    edits: { 'sealed-for-its-row': NEVER },
    noticedBy: vitest('test/cli/rekey-command.test.ts', 'encrypted for another row'),
  },
  'decrypted settings of one location are not used for another': {
    edits: { 'opened-for-its-location': [/(\w+) = (\w+)\.get\(.*\)/, '[$1] = $2.values()'] },
    noticedBy: vitest('test/cli/rekey-command.test.ts', 'encrypted for another row'),
  },
  'a grant belongs to its own settings only': {
    edits: { 'grant-of-its-settings': [/\$\{.*\}/, ''] },
    noticedBy: vitest('test/core/locations/credential-store.test.ts', 'into the row of other settings'),
  },
  'a file of locations has no secret': {
    edits: { 'no-secrets-in-files': [/isSecret \?/, 'false ?'] },
    noticedBy: vitest('test/cli/apply-command.test.ts', 'a secret in the file'),
  },
  'headers are stored in clear by a list': {
    edits: { 'stored-headers': [/of \w+/, 'in all'] },
    noticedBy: vitest('test/core/statuses/return-journey.test.ts', 'which is stored whole'),
  },
  'a provider names the headers that it reads': {
    edits: { 'named-headers': [/= \[.*\]/s, '= []'] },
    noticedBy: vitest('test/providers/standard.test.ts', 'reads only the headers webhookAuth.header'),
  },
  'no header has our token': {
    edits: { 'no-token-in-headers': [/= \w+\((\w+), .*\)/, '= $1'] },
    noticedBy: vitest('test/core/statuses/return-journey.test.ts', 'which is stored whole'),
  },
  'a connect link works once': {
    edits: { 'links-work-once': [/c\.used_at IS NULL/, 'true'] },
    noticedBy: vitest('test/http/connect/connect-routes.test.ts', 'works only once'),
  },
  'nobody makes an owner connect the account of somebody else': {
    edits: { 'connect-state': NEVER },
    noticedBy: vitest('test/http/connect/connect-routes.test.ts', 'is finished only with the state'),
  },
  'a connect link connects the account of its own restaurant': {
    edits: { 'own-account': REMOVED },
    noticedBy: vitest('test/http/connect/connect-routes.test.ts', 'the account is that of another restaurant'),
  },
  'no other page sends an owner to the vendor': {
    edits: { 'connect-own-page': NEVER },
    noticedBy: vitest('test/http/connect/connect-routes.test.ts', 'sends an owner to the vendor only'),
  },
  'an owner has seen the page of the link': {
    edits: { 'connect-own-form': [/return .*/, 'return flow;'] },
    noticedBy: vitest('test/http/connect/connect-routes.test.ts', 'sends an owner to the vendor only'),
  },
  'an integrator of some locations sends no owner elsewhere': {
    edits: { 'owner-at-vendor': NEVER },
    noticedBy: vitest('test/http/connect/connect-routes.test.ts', 'leads only to the vendor'),
  },
  'a connect link leads where it led when it was made': {
    edits: { 'owner-stays-at-vendor': NEVER },
    noticedBy: vitest('test/http/connect/connect-routes.test.ts', 'leads only to the vendor'),
  },
  'access that waits to be confirmed goes with no location unrevoked': {
    edits: { 'revoked-before-removal': NEVER },
    noticedBy: vitest('test/http/connect/connect-routes.test.ts', 'is not removed while'),
  },
  'the audit of a location has changes of its vendor application': {
    edits: { 'applications-in-audit': [/= .*;/, '= [];'] },
    noticedBy: vitest('test/core/locations/applications.test.ts', 'in the audit of each'),
  },
  'only the browser that granted access confirms it': {
    edits: { 'confirmed-where-granted': NEVER },
    noticedBy: vitest('test/http/connect/connect-routes.test.ts', 'is used for nothing'),
  },
  'unconfirmed access that ends takes the access of no location': {
    edits: { 'revoke-unconfirmed-alone': ALWAYS },
    noticedBy: vitest('test/http/connect/connect-routes.test.ts', 'is revoked when the location gets'),
  },
  'a location that is disconnected takes the access of no other': {
    edits: { 'revoke-for-one': [/access !== undefined && .*;/, 'false;'] },
    noticedBy: vitest('test/core/locations/lost-access.test.ts', 'does not end the access at the vendor'),
  },
  'a body with our token is sealed': {
    edits: { 'body-with-token': [/return .*/, 'return false;'] },
    noticedBy: vitest('test/core/statuses/return-journey.test.ts', 'a body with our token in it'),
  },
  'no text of a POS leaves with a secret of its location': {
    edits: { 'no-secret-leaves': [/return .*/, 'return value;'] },
    noticedBy: vitest('test/http/operator/secrets.test.ts', 'no secret of'),
  },
  "a name in a POS's URL stays in its ids": {
    edits: { 'names-stay-in-ids': [/isSentence \? longestFirst : unnameable/, 'longestFirst'] },
    noticedBy: vitest('test/core/locations/hide-secrets.test.ts', 'could be a name'),
  },
  'a secret is found in any code': {
    edits: { 'secret-in-code': [/return .*/, 'return shown;'] },
    noticedBy: vitest('test/core/locations/hide-secrets.test.ts', 'in every encoding'),
  },
  'a request is named by its route': {
    edits: { 'named-by-route': [/\$\{call\.route .*\}`/, "${URL.parse(call.url)?.pathname ?? ''}`"] },
    noticedBy: vitest('test/providers/shared.test.ts', 'by its route'),
  },
  'a body with a secret of its location is stored encrypted': {
    edits: { 'body-with-secret': [/= .*;/s, '= false;'] },
    noticedBy: vitest('test/core/statuses/body-with-secret.test.ts', 'stored encrypted'),
  },
  'a body is shown and replayed without the secrets that its location had': {
    edits: { 'former-secrets': [/, \.\.\.former/, ''] },
    noticedBy: vitest('test/core/statuses/body-with-secret.test.ts', 'after the location has got another'),
  },
  'a body is shown without the secrets of its location': {
    edits: { 'body-shown': [/= .*;/s, '= [] as string[];'] },
    noticedBy: vitest('test/core/statuses/body-with-secret.test.ts', 'shown without'),
  },
  'encrypted parts of a webhook about an erased order are not stored': {
    edits: { 'erased-not-stored': [/CASE .* ELSE (.*) END/, '$1'] },
    noticedBy: vitest('test/core/replay/replay-retention.test.ts', 'a webhook with our token in its body'),
  },
  'webhooks that cannot be authenticated have a quota': {
    edits: { 'unproven-quota': NEVER },
    noticedBy: vitest('test/core/statuses/return-journey.test.ts', 'a flood'),
  },
  'the quota counts for all processes together': {
    edits: { 'quota-of-all': [/OR /, 'OR true OR '] },
    noticedBy: vitest('test/core/statuses/return-journey.test.ts', 'a flood'),
  },
  "Postgres's clock": {
    edits: { 'postgres-clock': [/receivedAt: .*?\)/, 'receivedAt: new Date()'] },
    noticedBy: chaos('clock,kill'),
  },
  'a late answer with the time of Postgres is ignored': {
    edits: { 'late-answer': NEVER },
    noticedBy: vitest('test/core/postgres/database-clock.test.ts', 'does not make the clock worse'),
  },
  'a database clock that was set is followed': {
    edits: { 'set-clock': [/\w+ && /, ''] },
    noticedBy: vitest('test/core/postgres/database-clock.test.ts', 'the clock follows a change'),
  },
  'a connection with a stale prepared statement is not used again': {
    edits: { 'stale-statement': [/\(\?:/, '(?:0A|'] },
    noticedBy: vitest('test/database/open-database.test.ts', 'made stale'),
  },
  'a connection to a server that accepts no writes is not used again': {
    edits: { 'no-writes': [/\(\?:/, '(?:25006|'] },
    noticedBy: vitest('test/process/failover.test.ts', 'leads to the old primary'),
  },
  'a connection whose state is unknown is not used again': {
    edits: { 'unknown-state': [/\(.*\)/, '()'] },
    noticedBy: chaos('failover', 20),
  },
  'connections that carry webhooks stay open': {
    edits: { 'kept-connections': [/Array\.from\(.*\)/s, '[]'] },
    noticedBy: vitest('test/observe/metrics.test.ts', 'connections that carry webhooks'),
  },
  'a snooze hides no later problem': {
    edits: { 'later-than-snoozed': [/since <= Date\.parse\(its\.snoozedAt\)/, 'true'] },
    noticedBy: vitest('test/console/board-needs.test.ts', 'hides no later problem of the location'),
  },
  'a claim that failed is repeated, because it may have been committed': {
    edits: { 'claim-again': [/isFailing \? CLAIM_AGAIN_MS : /, ''] },
    noticedBy: vitest('test/core/postgres/run-every.test.ts', 'a claim that failed is repeated'),
  },
  'processes share the rounds of a look at all orders': {
    edits: { 'shared-rounds': [/liveProcesses\.count/, '1'] },
    noticedBy: vitest('test/core/postgres/run-every.test.ts', 'the more processes share its rounds'),
  },
  'after a restore, messages are numbered above what readers have seen': {
    edits: { 'sequence-floor': [/greatest\((.*?), .*\) \+/, '$1 +'] },
    noticedBy: vitest('test/cli/recover.test.ts', 'after a restore'),
  },
  'after a restore, an unfinished order is not sent as a new one': {
    edits: { 'restored-in-doubt': [/'in_doubt'/, "'waiting'"] },
    noticedBy: vitest('test/cli/recover.test.ts', 'after a restore'),
  },
  'after a restore, nor is a forgotten order': {
    edits: { 'forgotten-in-doubt': [/, state,/, ", replace(state, 'in_doubt', 'waiting'),"] },
    noticedBy: vitest('test/cli/recover.test.ts', 'after a restore'),
  },
  'nor is one at another POS, if the platform has moved it since': {
    edits: { 'doubt-stays-there': [/coalesce\(location_id, \$3\)/, '$$3'] },
    noticedBy: vitest('test/core/orders/recover-orders.test.ts', 'moved since its last message'),
  },
  'nor is one that was not read before the backup': {
    edits: { 'unread-is-located': [/SET location_id/, 'SET problem'] },
    noticedBy: vitest('test/core/orders/recover-orders.test.ts', 'had not been read before the backup'),
  },
  'nor is one that had ended, when it is signalled again': {
    edits: { 'ended-stays-ended': [/.+/, ''] },
    noticedBy: vitest('test/core/orders/recover-orders.test.ts', 'the previous version recorded'),
  },
  'each run of a recovery records what an earlier one did not see': {
    edits: { 'every-run-records': [/\(orders\)/, '(isNew ? orders : [])'] },
    noticedBy: vitest('test/cli/recover.test.ts', 'each run records orders'),
  },
  'a repeated command begins no other recovery': {
    edits: { 'recovery-named': NEVER },
    noticedBy: vitest('test/cli/recover.test.ts', 'a repeated command continues'),
  },
  'parked events are applied when their POS id becomes known': {
    edits: { 'parked-go-on': [/WHERE /, 'WHERE false AND '] },
    noticedBy: chaos('early'),
  },
  'a log that nobody reads does not stop the process': {
    edits: { 'unread-log': [/return \w+/, 'continue'] },
    noticedBy: chaos('logstop', 30, 30),
  },
  'a batch writer waits briefly for a lock': {
    edits: { 'brief-lock-wait': [/\d+ms/, '2s'] },
    noticedBy: vitest('test/core/statuses/locked-rows.test.ts', 'a batch waits briefly'),
  },
  'a process refuses a pooler that drops its settings': {
    edits: { 'settings-arrive': NEVER },
    noticedBy: vitest('test/database/open-database.test.ts', 'a process refuses a pooler'),
  },
  'a connection under way is kept when nobody waits for it any more': {
    edits: { 'kept-attempt': [/release\(\)/, 'release(true)'] },
    noticedBy: vitest('test/database/open-database.test.ts', 'keeps the connection for the next'),
  },
  'a migration builds an index while others write the table': {
    edits: { 'concurrent-index': [/.replace\(.*\)\)/, ')'] },
    noticedBy: vitest('test/migrations/migrate.test.ts', 'builds an index on an old table'),
  },
  'a webhook that waits for a lock goes to the lock-wait queue': {
    edits: { 'lock-wait': [/return \w+/, 'return flush'] },
    noticedBy: vitest('test/core/statuses/locked-rows.test.ts', 'that come one by one'),
  },
  'the next webhook about a locked order goes to the lock-wait queue at once': {
    edits: { 'known-locked': ALWAYS },
    noticedBy: vitest('test/core/statuses/locked-rows.test.ts', 'the row of its order'),
  },
  'a location gets a share of the free capacity': {
    edits: { 'free-share': [/(\w+) <= \((\w+) - (\w+)\) \/ \d/, '$1 <= $2 / 4 && $3 <= $2'] },
    noticedBy: vitest('test/core/statuses/fair-queue.test.ts', 'is full for one location'),
  },
  'anonymous connections are closed if there are too many connections': {
    edits: { 'makes-room': NEVER },
    noticedBy: vitest('test/process/process.test.ts', '1,500 connections without'),
  },
  'an address with more anonymous connections than others loses one of its own': {
    edits: { 'among-its-own': ALWAYS },
    noticedBy: vitest('test/process/process.test.ts', 'come again at once'),
  },
  'one credential cannot take the connections of the others': {
    edits: { 'few-strangers': [/resting[\w.]+/, 'undefined'], 'of-one-credential': NEVER },
    noticedBy: vitest('test/process/process.test.ts', 'connections of one'),
  },
  'a message that one way has taken is not sent by it again while the other way has not': {
    edits: { 'marked-by-way': [/= true/, '= false'] },
    noticedBy: vitest('test/core/live/status-webhook.test.ts', 'a receiver that fails does not hold up the topic'),
  },
  'the ways of a process do not skip what the other one claims': {
    edits: { 'claims-in-turn': [/inTurn\((.*)\);/, '($1)();'] },
    noticedBy: vitest('test/core/live/status-webhook.test.ts', 'both ways claim a new message at once'),
  },
  'a way marks and puts back its messages whatever the other one does to their rows': {
    edits: { 'row-by-key': [/`.*`/s, '`o.ctid = ANY (ARRAY(${rowsBy(orders, sequences)}))`'] },
    noticedBy: vitest('test/core/live/status-webhook.test.ts', 'at the same moment'),
  },
  'a stopped receiver stays stopped when a message under way fails': {
    edits: { 'stopped-stays': REMOVED },
    noticedBy: vitest('test/core/live/status-webhook.test.ts', 'is stopped at once by 410'),
  },
  'a receiver that failed long ago and fails again is not stopped': {
    edits: { 'fails-again': [/`.*`/, '`true`'] },
    noticedBy: vitest('test/core/live/status-webhook.test.ts', 'a failure of three days ago and one of now'),
  },
  'a URL that fetch refuses is refused at the start': {
    edits: { 'url-without-user': [/\.refine\([^]*\)/, ''] },
    noticedBy: vitest('test/config/config.test.ts', 'fetch sends nothing to it'),
  },
  'a URL that was removed while it failed does not count as failing for ever': {
    edits: { 'ill-for-an-hour': [/`.*`/, '`true`'] },
    noticedBy: vitest('test/core/live/status-webhook.test.ts', 'counts as failing for an hour'),
  },
  'refused messages do not hold up the others while a receiver looks down': {
    edits: { 'untried-while-down': [/isDown \? 'untried' : 'oldest'/, "'oldest' as 'oldest' | 'untried'"] },
    noticedBy: vitest('test/core/live/status-webhook.test.ts', 'that refuses some orders'),
  },
  'a receiver that is down gets one message at a time': {
    edits: { 'one-while-down': [/\? 1 :/, '? UNDER_WAY :'] },
    noticedBy: vitest('test/core/live/status-webhook.test.ts', 'one message at a time while it is down'),
  },
  'messages that are answered late make room for others': {
    edits: { 'slow-makes-room': [/setInterval\(.*\)/, 'setInterval(() => {}, SLOW_MS)'] },
    noticedBy: vitest('test/core/live/status-webhook.test.ts', 'answers many messages late'),
  },
  'an order id that is a step in a path is not fetched': {
    edits: { 'id-is-no-path': NEVER },
    noticedBy: vitest('test/platform/fetch-order.test.ts', 'fetches no order with the id'),
  },
  'a module that forgot to return its data holds the order': {
    edits: { 'forgot-to-return': REMOVED },
    noticedBy: vitest('test/platform/fetch-order.test.ts', 'holds the order, and does not take it for missing'),
  },
  'the relay starts at its last position, because an old snapshot keeps published rows below it': {
    edits: { 'relay-start': [/;/, " && '-infinity';"] },
    noticedBy: vitest('test/core/live/publish-live.test.ts', 'that an old snapshot keeps'),
  },
  'due work is searched from the last position, because an old snapshot keeps finished rows below it': {
    edits: { 'due-start': [/: \w+/, ": '-infinity'"] },
    noticedBy: vitest('test/core/placements/claim-placements.test.ts', 'that an old snapshot keeps'),
  },
  'no location gets more than its share of the workers': {
    edits: { 'worker-share': [/\w+ >= \w+ \|\| /, ''], 'worker-turns': [/<= [\w.]+/, '<= 100'] },
    noticedBy: vitest('test/core/placements/claim-placements.test.ts', 'takes only a share of the orders'),
  },
  'at most one event of each status is parked under a POS id': {
    edits: { 'one-of-each-status': [/^/, '/*'], 'one-of-each-status-end': [/^/, '*/'] },
    noticedBy: vitest('test/core/statuses/redrive-parked.test.ts', 'one event of each status'),
  },
  'an event sees the POS ids from the events before it in its batch': {
    edits: { 'linked-in-batch': [/: \w+\(\w+\)(\s*\?)/, ': false$1'] },
    noticedBy: vitest('test/core/statuses/batch-as-one-by-one.test.ts', 'claim one POS id'),
  },
  'the short statement applies all of its webhooks or none': {
    edits: { 'all-plain': [/`.*`/, "'true '"] },
    noticedBy: vitest('test/core/statuses/batch-as-one-by-one.test.ts', 'of batches with one plain event'),
  },
  'two batches do not store one POS id for two orders': {
    edits: { 'links-of-one-order': [/THEN 0/, 'THEN 1'] },
    noticedBy: vitest('test/core/statuses/batch-as-one-by-one.test.ts', 'at the same moment'),
  },
  'the sweep finds events that were parked while their POS id was being stored': {
    edits: { 'sweep-finds': [/AND .*/, 'AND false'] },
    noticedBy: vitest('test/core/statuses/redrive-parked.test.ts', 'at the moment when its POS id'),
  },
  'a spilled webhook is acknowledged after its commit': {
    edits: { 'ack-after-commit': [/(\w+) : await (.*);/s, '$1 : (void $2.catch(() => {}), $1);'] },
    noticedBy: vitest('test/core/spill/spill.test.ts', 'whose commit fails'),
  },
  'a spilled webhook is answered after Pub/Sub has acknowledged it': {
    edits: { 'answered-when-out': [/await (.*);/s, 'void $1.catch(() => {});'] },
    noticedBy: vitest('test/core/spill/spill.test.ts', 'if Pub/Sub is also away'),
  },
  'a spilled webhook keeps its id': {
    edits: { 'spilled-id': [/await (.*);/s, '{ ...(await $1), id: crypto.randomUUID() };'] },
    noticedBy: vitest('test/core/spill/spill.test.ts', 'delivered five times'),
  },
  'a spilled webhook is encrypted': {
    edits: {
      'spilled-sealed': [/await \w+\(\w+, (.*), \w+\)/, 'JSON.stringify($1)'],
      'spilled-opened': [/await \w+\(\w+, (.*), \w+\)/, 'JSON.parse($1)'],
    },
    noticedBy: vitest('test/core/spill/spill.test.ts', 'unreadable without SETTINGS_KEY'),
  },
  'a member gets messages of their own order only': {
    edits: { 'own-order': [/(\w+)\.get\(.*\)/, '[...$1.values()][0]'] },
    noticedBy: chaos('kill'),
  },
  'a snapshot has its time, whoever resumes the same order': {
    edits: { 'time-of-joined': [/requested\.joined/, 'requested.after IS NULL'] },
    noticedBy: vitest('test/core/live/order-feed.test.ts', 'while another resumes'),
  },
  'a follower that reconnects gets the messages that it missed': {
    edits: { 'messages-of-meanwhile': [/, \w+/, ', undefined'] },
    noticedBy: vitest('test/http/follow/follow-routes.test.ts', 'gets every message after Last-Event-ID'),
  },
  'the feed finds a message that was committed after a later message': {
    edits: { 'slow-commit': [/xmin/, 'xmax'] },
    noticedBy: vitest('test/core/live/order-feed.test.ts', 'whose commit took longer'),
  },
  'a signal for a past order is ignored': {
    edits: { 'past-order': NEVER },
    noticedBy: vitest('test/core/retention/past-orders.test.ts', 'a late signal'),
  },
  'a signal for a known order refreshes the order': {
    edits: { 'signal-refreshes': [/WHERE /, 'WHERE false AND '] },
    noticedBy: chaos('cancel'),
  },
  'a signal is verified before its body is used': {
    edits: { 'signal-verified': REMOVED },
    noticedBy: vitest('test/http/signal-routes.test.ts', 'like a wrong token, and not recorded'),
  },
  'slow signals fill no memory': {
    edits: { 'signal-in-budget': [/, \{ onBytes: reservation.take \}/, ''] },
    noticedBy: vitest('test/http/signal-routes.test.ts', 'take too much memory'),
  },
  'a signal about a fulfillment names no order': {
    edits: { 'order-not-fulfillment': [/= .*/, '= true;'] },
    noticedBy: vitest('test/http/signal-routes.test.ts', 'about a fulfillment'),
  },
  'signals are recorded in the order of their keys': {
    edits: { 'signals-by-key': REMOVED },
    noticedBy: vitest('test/core/signals/record-signals.test.ts', 'in the order of their keys'),
  },
  'a locked placement delays only its own signal': {
    edits: { 'signals-locked': [/FOR UPDATE [^)]*/, ''] },
    noticedBy: vitest('test/core/signals/record-signals.test.ts', 'locked elsewhere'),
  },
  'a signal that Postgres refuses fails no other signal': {
    edits: { 'signal-alone': NEVER },
    noticedBy: vitest('test/core/signals/record-signals.test.ts', 'refuses the value of one'),
  },
  'no signal waits for several time-outs of Postgres': {
    edits: { 'all-told': [/\[\.\.\.batch\.values\(\), \.\.\.takeAll\(\)\]/, 'batch.values()'] },
    noticedBy: vitest('test/core/signals/record-signals.test.ts', 'if Postgres does not answer'),
  },
  'a signal that arrives during a refresh is not lost': {
    edits: { 'refresh-ends': [/ AND signalled_at .*/, ''], 'refresh-stays': [/>/, '<'] },
    noticedBy: vitest('test/core/cancellations/lock-order.test.ts', 'a signal during a refresh'),
  },
  'a cancel of an order that cannot be read is for this order': {
    edits: { 'cancel-of-this-order': [/ \|\| data\.serviceOrderId.*\)/, ')'] },
    noticedBy: vitest('test/core/domain/read-canonical-order.test.ts', 'that names'),
  },
  'an answer with errors makes no order': {
    edits: { 'partial-is-no-order': [/isPartial \?/, 'isPartial && false ?'] },
    noticedBy: vitest('test/platform/order-module.test.ts', 'that is not cancelled readable'),
  },
  'nor is a null that an error explains taken for a value': {
    edits: { 'null-of-an-error': REMOVED },
    noticedBy: vitest('test/platform/order-module.test.ts', 'does not count if'),
  },
  'a cancel of an order that was never read is final': {
    edits: { 'cancelled-stays-cancelled': [/.+/, ''] },
    noticedBy: vitest('test/core/cancellations/cancel-an-emptied-order.test.ts', 'notified once'),
  },
  'operators see a refresh that was given up': {
    edits: { 'given-up-is-seen': [/await .*/, 'await endRefresh(deps.pool, refresh);'] },
    noticedBy: vitest('test/core/cancellations/refresh-order.test.ts', 'is then given up'),
  },
  'a cancel and a change are decided under the lock of the order': {
    edits: { 'cancel-lock': [/ FOR UPDATE/, ''] },
    noticedBy: vitest('test/core/cancellations/lock-order.test.ts', 'waited for the lock'),
  },
  'no ticket is created after the cancel is committed': {
    edits: { 'no-ticket-after-cancel': [/ AND \(\w+ IS NULL OR .*?\)/, ''] },
    noticedBy: vitest('test/core/cancellations/cancel-an-order.test.ts', 'no ticket is created'),
  },
  'a missing ticket is believed a minute after the request': {
    edits: { 'absent-too-early': [/ AND early <= 0/, ''] },
    noticedBy: vitest('test/core/placements/forward-journey.test.ts', 'within a minute of the request'),
  },
  'an order in doubt is not sent again after its cancel': {
    edits: { 'no-retry-once-cancelled': [/= /, '= false && '] },
    noticedBy: vitest('test/core/cancellations/cancel-an-order.test.ts', 'a POS without a lookup is asked to cancel'),
  },
  'an order is recorded only under the lease under which it was fetched': {
    edits: { 'fetched-under-lease': [/ AND lease_until > now\(\)/, ''] },
    noticedBy: vitest('test/core/placements/claim-placements.test.ts', 'was fetched under an expired lease'),
  },
  'only an order in doubt waits for a person': {
    edits: { 'waiting-is-due': [/ AND \(.*?\)$/m, ''] },
    noticedBy: vitest('test/core/placements/claim-placements.test.ts', 'again waits for a person only if'),
  },
  'after a repeat that failed, a missing ticket counts a minute later': {
    edits: { 'repeat-may-arrive': [/true/, 'false'] },
    noticedBy: vitest('test/core/placements/forward-journey.test.ts', 'may still make a ticket'),
  },
  'an order that a recovery found ended counts as read': {
    edits: { 'ended-is-read': [/WHERE "locationId" IS NOT NULL/, 'WHERE false'] },
    noticedBy: vitest('test/core/orders/recover-orders.test.ts', 'even if it is a past order'),
  },
  'a kitchen that goes on after its own end is told to a person': {
    edits: { 'goes-on-after-its-end': [/failed_at IS NOT NULL/, 'false'] },
    noticedBy: vitest('test/core/statuses/return-journey.test.ts', 'comes before'),
  },
  'a webhook with an old time is not replayed with others': {
    edits: { 'chosen-by-a-person': [/= isChosen/, '= true'] },
    noticedBy: vitest('test/core/replay/replay.test.ts', 'by the time of its arrival'),
  },
  'a platform that refuses one order does not count as refusing all': {
    edits: { 'refused-alone': [/status === 200 && /, 'status === 201 && '] },
    noticedBy: vitest('test/platform/order-module.test.ts', 'may concern this order alone'),
  },
  'a refused field of an order does not count as refusing all': {
    edits: { 'refused-field': NEVER },
    noticedBy: vitest('test/core/placements/judge-answer.test.ts', 'does not count as a refusal of all orders'),
  },
  'an order is not tried again and again with a query that does not fit': {
    edits: { 'query-refused': NEVER },
    noticedBy: vitest('test/core/placements/judge-answer.test.ts', 'and the field is named'),
  },
  'a refused field is named only in words of our query': {
    edits: { 'own-words': [/known\.has\(key\)/, 'true'] },
    noticedBy: vitest('test/core/placements/judge-answer.test.ts', 'only in words of our query'),
  },
  'an expired token is renewed': {
    edits: { 'headers-renewed': [/= .*/, '= undefined;'] },
    noticedBy: vitest('test/platform/platform-headers.test.ts', 'are asked again after'),
  },
  'many refused orders ask for one token': {
    edits: { 'asked-once': ALWAYS },
    noticedBy: vitest('test/platform/platform-headers.test.ts', 'once by many orders'),
  },
  'a module gets the token to no other server': {
    edits: { 'own-origin': [/= .*/, '= true;'] },
    noticedBy: vitest('test/platform/fetch-order.test.ts', 'sends nothing to another origin'),
  },
  'an order id leads a module to no other resource': {
    edits: { 'no-dots-in-path': NEVER },
    noticedBy: vitest('test/platform/fetch-order.test.ts', 'sends nothing to the path'),
  },
  'a webhook that fails makes the topic repeat nothing about kitchens': {
    edits: { 'once-by-each-way': NEVER },
    noticedBy: vitest('test/server/kitchens.test.ts', 'that the webhook refuses'),
  },
  'a receiver that is stopped gets nothing about kitchens': {
    edits: { 'nothing-to-stopped': NEVER },
    noticedBy: vitest('test/server/kitchens.test.ts', 'that the webhook refuses'),
  },
  'a promise that a module left does not end the process': {
    edits: { 'left-promise': [/if \(.*\) /, ''] },
    noticedBy: vitest('test/platform/fetch-order.test.ts', 'by a promise that the module left'),
  },
  'a refusal that a module catches does not make the order missing': {
    edits: { 'failure-decides': [/throw failure/, 'return null'] },
    noticedBy: vitest('test/platform/fetch-order.test.ts', 'a refusal that the mapper takes for no order'),
  },
  'refused orders do not keep healthy ones from being asked for': {
    edits: { 'probe-with-others': [/= .*/, "= 'refused';"] },
    noticedBy: vitest('test/core/placements/forward-journey.test.ts', 'keep healthy orders from being fetched'),
  },
  'a push without an id in one form is read in the other': {
    edits: { 'other-form': [/ \?\? idIn\(parsed\)/, ''] },
    noticedBy: vitest('test/http/pubsub-push.test.ts', 'an unwrapped body with a field message'),
  },
  'the id of a CloudEvent is not the id of its order': {
    edits: { 'id-of-the-event': [/= .*/, '= false;'] },
    noticedBy: vitest('test/http/pubsub-push.test.ts', 'the data of a CloudEvent'),
  },
  'a platform that fails does not end a doubt': {
    edits: { 'doubt-stays': [/=== undefined/, '!== null'] },
    noticedBy: vitest('test/core/cancellations/call-off.test.ts', 'stays in doubt when the platform'),
  },
  'an answer that a gateway may have given is not believed': {
    edits: { 'whose-answer': [/= .*;/, '= undefined as Error | undefined;'] },
    noticedBy: vitest('test/providers/standard.test.ts', 'does not say that the POS took the order'),
  },
  'an answer without a body is not believed if the POS named no ticket lately': {
    edits: { 'bare-is-believed': [/ && \(await context\.namedTicketLately\?\.\(\)\) === true/, ''] },
    noticedBy: vitest('test/providers/standard.test.ts', 'only if namedTicketLately says yes'),
  },
  'a mail server that refuses us does not end a message': {
    edits: { 'address-for-good': [/= .*;/, '= (responseCode ?? 0) >= 500;'] },
    noticedBy: vitest('test/core/notices/send-notices.test.ts', 'is tried again if the mail server refuses'),
  },
  'a receiver says when it is to be asked again': {
    edits: { 'receiver-says-when': [/, retryAfterMs/, ''] },
    noticedBy: vitest('test/core/notices/send-notices.test.ts', 'waits as long as the receiver asks'),
  },
  'a member hears nothing of a cancellation that only we began': {
    edits: { 'call-off-untold': [/c\.fails_with/, 'NULL'] },
    noticedBy: vitest('test/core/cancellations/call-off.test.ts', 'is not notified of the attempt'),
  },
  'an order that may have a ticket is called off before it fails': {
    edits: { 'called-off': NEVER },
    noticedBy: vitest('test/core/cancellations/call-off.test.ts', 'once the POS has cancelled its ticket'),
  },
  'after a process died in a request, a missing ticket is believed a minute after its lease': {
    edits: { 'absent-after-death': [/\$\{ENDED\}/, 'p.request_ended_at'] },
    noticedBy: vitest('test/core/placements/forward-journey.test.ts', 'died in the request'),
  },
  'a missing ticket of a cancel counts only a minute after the request': {
    edits: { 'absent-after': [/\d+/, '0'] },
    noticedBy: vitest('test/core/cancellations/cancel-an-order.test.ts', 'counts only a minute after the request'),
  },
  'a cancel is committed before the call': {
    edits: { 'cancel-written': ENDED },
    noticedBy: vitest('test/core/cancellations/cancel-an-order.test.ts', 'is stored before it is made'),
  },
  'a doubt that ends does not end a request to cancel': {
    edits: { 'cancel-stays-open': [/AND .*`/, '`'] },
    noticedBy: vitest('test/core/cancellations/cancel-an-order.test.ts', 'asked to cancel once'),
  },
  'a cancel of a process that died is in doubt': {
    edits: { 'died-in-doubt': [/= .*? \?/, '= false ?'] },
    noticedBy: vitest('test/core/cancellations/cancel-an-order.test.ts', 'asked only once, even if the answer'),
  },
  'a cancel without an answer is in doubt if the POS does not deduplicate cancels': {
    edits: { 'lost-in-doubt': NEVER },
    noticedBy: chaos('cancel', 30, 12),
  },
  'a cancel in doubt is not repeated if the POS does not deduplicate cancels': {
    edits: { 'doubt-not-repeated': [/ \|\| .*\{/, ') {'] },
    noticedBy: chaos('cancel', 30, 12),
  },
  'one request to cancel at a time at each location': {
    edits: { 'one-cancel-each': REMOVED },
    noticedBy: vitest('test/core/cancellations/claim-cancellations.test.ts', 'a claim takes one cancellation'),
  },
  'the member is notified that a cancel was refused': {
    edits: { 'refusal-notified': [/SET .*?, /, 'SET '] },
    noticedBy: vitest('test/core/cancellations/cancel-an-order.test.ts', 'published with the unchanged status'),
  },
  'an order that was sent once is repeated unchanged': {
    edits: { 'sent-as-it-was': NEVER },
    noticedBy: vitest('test/core/cancellations/refresh-order.test.ts', 'repeated with its first contents'),
  },
  'a worker that fetched an order before its change does not send it': {
    edits: { 'worker-lets-go': [/, lease_id = NULL, lease_until = NULL/, ''] },
    noticedBy: vitest('test/core/cancellations/refresh-order.test.ts', 'read the old order'),
  },
  'the token of Prometheus reads only metrics': {
    edits: { 'metrics-reads-no-more': [/return .*/, 'return true;'] },
    noticedBy: vitest('test/http/operator/rights-routes.test.ts', 'can read only /metrics'),
  },
  'an integrator reads no orders': {
    edits: { 'integrator-reads-no-orders': [/return .*/, 'return true;'] },
    noticedBy: vitest('test/http/operator/rights-routes.test.ts', 'show an integrator no order'),
  },
  'the actions about orders are for readers of orders': {
    edits: { 'actions-at-orders': [/\.filter\(.*\)/, ''] },
    noticedBy: vitest('test/http/operator/rights-routes.test.ts', 'show an integrator no order'),
  },
  'a secret is never shown': {
    edits: { 'secrets-are-not-shown': [/return .*;/, 'return true;'] },
    noticedBy: vitest('test/http/operator/location-routes.test.ts', 'its state before and after a change'),
  },
  'a right at a group is in the audit of its locations': {
    edits: { 'groups-in-audit': [/ OR groups && \$2::text\[\]/, ''] },
    noticedBy: vitest('test/http/operator/rights-routes.test.ts', 'is in the audit of each location'),
  },
  'a right at a group is seen by the admins of its locations': {
    edits: { 'groups-in-lists': [/, \.\.\.rows\.map\(.*\)/, ''] },
    noticedBy: vitest('test/http/operator/rights-routes.test.ts', 'is shown to an admin of one of these'),
  },
  'a look at the orders of a member is in the audit of their locations': {
    edits: { 'orders-in-audit': [/GROUP BY 1/, 'AND false GROUP BY 1'] },
    noticedBy: vitest('test/http/operator/audit-routes.test.ts', 'are in the audit of each of their locations'),
  },
  'a dry run that shows member data is recorded': {
    edits: { 'dry-look-recorded': [/isDry \? look/, 'isDry ? undefined'] },
    noticedBy: vitest('test/operators/operations.test.ts', 'eraseMember'),
  },
  'an integrator enters no contact that answers': {
    edits: { 'operator-enters-contacts': NEVER },
    noticedBy: vitest('test/http/operator/location-routes.test.ts', 'lets only operators change these contacts'),
  },
  'contacts are not tested again and again': {
    edits: { 'few-tests': NEVER },
    noticedBy: vitest('test/http/operator/location-routes.test.ts', 'allows one test of its contacts a minute'),
  },
  'the days of the audit are those of the owner': {
    edits: { 'days-of-owner': NEVER },
    noticedBy: vitest('test/database/grant-rights.test.ts', 'expediter migrate'),
  },
  'an integrator changes only their own groups': {
    edits: { 'groups-within-scope': NEVER },
    noticedBy: vitest('test/http/operator/rights-routes.test.ts', 'first location, which the group'),
  },
  'an integrator of a group creates no location that has orders': {
    edits: { 'history-of-another': NEVER },
    noticedBy: vitest('test/http/operator/rights-routes.test.ts', 'orders were of somebody else'),
  },
  'a location joins a group only by who has its roles': {
    edits: { 'groups-give-no-more': [/ && given.*;/, ';'] },
    noticedBy: vitest('test/http/operator/rights-routes.test.ts', 'reach a joining location only if'),
  },
  'a removal names orders to their readers only': {
    edits: { 'orders-for-their-readers': [/namesOrders \?/, 'true ?'] },
    noticedBy: vitest('test/http/operator/rights-routes.test.ts', 'show an integrator no order'),
  },
  'a name of a token elsewhere is not told': {
    edits: { 'names-elsewhere': [/same\.counts \?/, 'true ?'] },
    noticedBy: vitest('test/http/operator/rights-routes.test.ts', 'does not get the name of another'),
  },
  'a revoked token is not shown again': {
    edits: { 'revoked-is-over': NEVER },
    noticedBy: vitest('test/http/operator/location-routes.test.ts', 'gives the same caller the same token'),
  },
  'a text that is not secret is no reference': {
    edits: { 'references-in-secrets': NEVER },
    noticedBy: vitest('test/cli/apply-command.test.ts', 'reads no reference in a text'),
  },
  'a secret is read only below a named folder': {
    edits: { 'secrets-below-folder': NEVER },
    noticedBy: vitest('test/cli/apply-command.test.ts', 'reads a secret only from a file below'),
  },
  'a stored secret goes to no other host': {
    edits: { 'secrets-stay-at-host': NEVER },
    noticedBy: vitest('test/http/operator/location-routes.test.ts', 'sends no secret to another host'),
  },
  'a changed application is used at the next request': {
    edits: { 'opened-with-its-application': [/known\.by === sealedApplication && /, ''] },
    noticedBy: vitest('test/core/locations/applications.test.ts', 'gets a new secret by one call'),
  },
  "a refusal of a client's former secret does not outlast it": {
    edits: { 'refused-for-its-proof': [/\.\.\.request\.proof/, ''] },
    noticedBy: vitest('test/core/locations/applications.test.ts', 'gets a new secret by one call'),
  },
  'a location refers to an application of its own integration': {
    edits: {
      'application-of-its-integration': [/known\?\.integration !== provider\.integration/, 'known === undefined'],
    },
    noticedBy: vitest('test/core/locations/applications.test.ts', 'is refused if the location gives'),
  },
  'a location leads the secret of an application nowhere else': {
    edits: { 'application-alone': [/\.find\(.*\)/, '.find(() => false)'] },
    noticedBy: vitest('test/core/locations/applications.test.ts', 'is refused if the location gives'),
  },
  'an application that locations use stays': {
    edits: { 'application-in-use': NEVER },
    noticedBy: vitest('test/core/locations/applications.test.ts', 'cannot be removed while locations use it'),
  },
  'an application stays while a location that refers to it is stored': {
    edits: { 'application-kept': [/'FOR KEY SHARE'/, "''"] },
    noticedBy: vitest('test/core/locations/applications.test.ts', 'that is removed while a location'),
  },
  'a secret has no white space that a check may read otherwise': {
    edits: { 'no-white-space': REMOVED },
    noticedBy: vitest('test/core/locations/where-settings-lead.test.ts', 'whatever characters are around'),
  },
  'a stored secret is used for no other restaurant': {
    edits: { 'secrets-stay-at-target': [/isScoped \? 'whole' : /, ''] },
    noticedBy: vitest('test/core/locations/where-settings-lead.test.ts', 'only if all secrets are given again'),
  },
  'an integrator of a group takes no restaurant of another location': {
    edits: { 'target-of-another': NEVER },
    noticedBy: vitest('test/core/locations/where-settings-lead.test.ts', 'only if all secrets are given again'),
  },
  'a restaurant is given to one location at a time': {
    edits: { 'one-at-a-target': REMOVED },
    noticedBy: vitest('test/core/locations/where-settings-lead.test.ts', 'one of many simultaneous requests'),
  },
  'an integrator of a group creates ids of this group only': {
    edits: { 'ids-of-a-group': [/after\.some\(.*\);/, 'after.length > 0;'] },
    noticedBy: vitest('test/http/operator/rights-routes.test.ts', 'neither learn which ids exist'),
  },
  'an integrator removes no roles that an admin gave': {
    edits: { 'rights-of-admins': NEVER },
    noticedBy: vitest('test/http/operator/rights-routes.test.ts', 'are not lost by an integrator'),
  },
  'a location is created once': {
    edits: { 'created-once': REMOVED },
    noticedBy: vitest('test/http/operator/location-routes.test.ts', 'created by only one of many'),
  },
  'a name that begins like an address of this machine is another machine': {
    edits: { 'own-machine': [/return .*/, "return /^127\\.|^localhost/.test(host) || host === '::1';"] },
    noticedBy: vitest('test/core/egress/guarded-fetch.test.ts', 'refuses the host'),
  },
  'wrong credentials at one door keep nobody out of another': {
    edits: { 'bucket-per-door': [/get\(endpoint\)/, 'values().next().value'] },
    noticedBy: vitest('test/http/throttle-failures.test.ts', 'each endpoint counts its own'),
  },
  'a credential that nobody can guess is always checked': {
    edits: { 'not-guessable': [/OURS_ONLY.*\) \|\| .*\)\)\) \{/, 'false) {'] },
    noticedBy: vitest('test/http/throttle-failures.test.ts', 'a new named token and a new session'),
  },
  'a body of many levels or values is refused before it is read': {
    edits: { 'bounded-json': NEVER },
    noticedBy: vitest('test/http/operator/bound-bodies.test.ts', 'before it is parsed'),
  },
  'large bodies are handled one at a time': {
    edits: { 'large-in-turn': [/turn\(.*\)/, 'Promise.resolve(() => {})'] },
    noticedBy: vitest('test/http/operator/bound-bodies.test.ts', 'callers take turns'),
  },
  'a contact of a restaurant is told once': {
    edits: { 'told-once': [/ON CONFLICT DO NOTHING/, ''] },
    noticedBy: vitest('test/core/notices/find-notices.test.ts', 'once about each'),
  },
  'a page of notices is told whatever becomes of the next': {
    edits: { 'page-committed': [/splice\(0, page\)/, 'splice(0)'] },
    noticedBy: vitest('test/core/notices/find-notices.test.ts', 'even if the next page of the search'),
  },
  'a look at suspects takes a few reads for each': {
    edits: { 'suspects-by-index': [/ OFFSET 0/, ''] },
    noticedBy: vitest('test/core/postgres/cached-plans.test.ts', 'find-suspects'),
  },
  'a look at quiet orders takes a few reads for each': {
    edits: { 'quiet-by-index': [/ OFFSET 0/, ''] },
    noticedBy: vitest('test/core/postgres/cached-plans.test.ts', 'claim-quiet-orders'),
  },
  'late cancellations take a few reads for each': {
    edits: { 'late-by-index': [/= ANY \(ARRAY\((.*)\)\)/, 'IN ($1)'] },
    noticedBy: vitest('test/core/postgres/cached-plans.test.ts', 'give-late'),
  },
  'work that no look sees begins after a minute': {
    edits: { 'unasked-each-minute': [/ended - since >= UNASKED_MS/, 'false'] },
    noticedBy: vitest('test/core/postgres/when-due.test.ts', 'after a minute'),
  },
  'a feed that nobody watches sleeps': {
    edits: { 'unwatched-rest': [/ : Infinity/, ' : about.pollMs'] },
    noticedBy: vitest('test/process/poll-while-watched.test.ts', 'sleeps until it is woken'),
  },
  'work that takes longer is done less often': {
    edits: { 'rest-after-work': [/ times \}/, ' times: 0 }'] },
    noticedBy: vitest('test/core/postgres/run-every.test.ts', 'rests for a multiple'),
  },
  'orders that nobody waits for are told in a quarter of an hour': {
    edits: { unhurried: [/15/, '1'] },
    noticedBy: vitest('test/core/notices/find-notices.test.ts', 'a quarter of an hour'),
  },
  'orders that fail together are told together': {
    edits: { 'told-together': [/m\.created_at > now\(\)/, "m.created_at > now() + interval '1 h'"] },
    noticedBy: vitest('test/core/notices/find-notices.test.ts', 'in one message about all waiting'),
  },
  'a contact is told nothing in its quiet hours': {
    edits: { 'quiet-hours': [/ \|\| isQuiet\(.*?\)/, ''] },
    noticedBy: vitest('test/core/notices/find-notices.test.ts', 'quiet hours'),
  },
  'a receiver can drop a message that is sent again': {
    edits: { 'same-message-id': REMOVED },
    noticedBy: vitest('test/core/notices/send-notices.test.ts', 'the same Message-ID'),
  },
  'a message is sent by one process at a time': {
    edits: { 'sent-by-one': REMOVED },
    noticedBy: vitest('test/core/notices/send-notices.test.ts', 'that one process is sending'),
  },
  'a message leaves out what was settled': {
    edits: { 'settled-not-told': [/ AND \$\{IS_OPEN\}/, ''] },
    noticedBy: vitest('test/core/notices/send-notices.test.ts', 'leaves out orders that are settled'),
  },
  'a link ends after a day': {
    edits: { 'answer-in-a-day': [/ AND m\.created_at > now\(\) - interval '\$\{VALID_FOR\}'/, ''] },
    noticedBy: vitest('test/http/answer-routes.test.ts', 'a link older than a day'),
  },
  'a change by the platform is one job, however often it is signalled': {
    edits: { 'change-once': [/ AND \$6::boolean/, ''] },
    noticedBy: vitest('test/core/cancellations/change-a-ticket.test.ts', 'however often the platform signals it'),
  },
  "a cancel or a change of the platform waits for the answer to an operator's cancel": {
    edits: { 'cancel-may-be-refused': [/later\(\)/, "ended('unchanged')"] },
    noticedBy: vitest('test/core/cancellations/refresh-order.test.ts', 'an operator had begun one'),
  },
  'what the platform changes of an order that it has cancelled is no job': {
    edits: { 'cancelled-is-no-change': [/ \|\| cancelledAt !== undefined/, ''] },
    noticedBy: vitest('test/core/cancellations/change-a-ticket.test.ts', 'may then empty'),
  },
  'a restaurant gets a message that a telephone can show, however many items are changed': {
    edits: { 'few-items-told': [/\.slice\(0, ITEMS\)/, ''] },
    noticedBy: vitest('test/core/domain/kitchen-changes.test.ts', 'how many more there are'),
  },
  'what was left out of a message is told if it needs an answer again': {
    edits: { 'left-out-untold': [/WHERE/, 'WHERE false AND'] },
    noticedBy: vitest('test/core/notices/send-notices.test.ts', 'left out of a message'),
  },
  'a refresh that lost its lease changes nothing': {
    edits: { 'newest-answer': NEVER },
    noticedBy: vitest('test/core/cancellations/change-a-ticket.test.ts', 'lost its lease'),
  },
  'the patience with an unreadable order begins when it cannot be read': {
    edits: { 'patience-since-failing': [/coalesce\(.*?\(\)\)/, 'NULL'] },
    noticedBy: vitest('test/core/cancellations/refresh-order.test.ts', 'not given up at its first failure'),
  },
  'what waited for a doubt or a cancel is looked at as soon as that is decided': {
    edits: { 'deferred-no-longer': [/WHERE/, 'WHERE false AND'] },
    noticedBy: vitest('test/core/cancellations/change-a-ticket.test.ts', 'while it was in doubt is published'),
  },
  'what a restaurant has applied is no change for it': {
    edits: { 'applied-before': [/asThen\(applied\)/, 'contents'] },
    noticedBy: vitest('test/core/cancellations/change-a-ticket.test.ts', 'the difference from what the restaurant'),
  },
  'an answer is about the change that was shown': {
    edits: { 'change-as-seen': REMOVED },
    noticedBy: vitest('test/core/cancellations/change-a-ticket.test.ts', 'is not taken for it'),
  },
  'nobody is asked about a change of an order that has ended or is to be cancelled': {
    edits: { 'change-of-open': [/ AND o\.ended_at.*`/s, ')`'] },
    noticedBy: vitest('test/core/cancellations/change-a-ticket.test.ts', 'needs nobody'),
  },
  'a question is answered once': {
    edits: { 'answered-once': NEVER },
    noticedBy: vitest('test/http/answer-routes.test.ts', 'comes at the same moment'),
  },
  'a move to another location ends the pause there, and begins anew what hangs on the location': {
    edits: { 'move-renews': [/\$\{TAKE_OFF_PAUSE\}, moved_at = now\(\), /, ''] },
    noticedBy: vitest('test/core/cancellations/refresh-order.test.ts', 'moved from a paused location'),
  },
  'a late order that was moved is told where it is now': {
    edits: { 'told-where-it-is': [/, p\.moved_at/, ''] },
    noticedBy: vitest('test/core/cancellations/refresh-order.test.ts', 'a late order that is moved'),
  },
  'a pause is taken off the clock of an order': {
    edits: { 'pause-taken-off': [/\$\{TAKE_OFF_PAUSE\}/, 'deadline_at = p.deadline_at'] },
    noticedBy: vitest('test/core/notices/find-notices.test.ts', 'that a pause delayed, until'),
  },
  'a pause of the new location counts only from the move': {
    edits: { 'paused-since-move': [/p\.moved_at, /, ''] },
    noticedBy: vitest('test/core/cancellations/refresh-order.test.ts', 'counts only from the move'),
  },
  'a location keeps its POS while that has orders': {
    edits: { 'pos-has-orders': NEVER },
    noticedBy: vitest('test/http/operator/location-routes.test.ts', 'keeps its integration'),
  },
  'webhooks of a former POS are accepted while it has orders': {
    edits: { 'former-tokens': [/ON f\.location_id = t\.location_id/, 'ON false'] },
    noticedBy: vitest('test/http/operator/location-routes.test.ts', 'keeps its integration'),
  },
  "a vendor's limit is divided by the processes": {
    edits: { 'divided-limit': [/ \/ liveProcesses\.count/, ''] },
    noticedBy: vitest('test/providers/shared.test.ts', 'are divided among the running processes'),
  },
  'a call that our own rate limiter did not allow is no silence of the POS': {
    edits: { 'not-sent': NEVER },
    noticedBy: vitest('test/core/placements/forward-journey.test.ts', 'is recorded as not sent'),
  },
  'only calls that reached a location tell whether its POS answers': {
    edits: { 'told-by-its-calls': [/\(a\.outcome.*NOT FALSE/s, '(true'] },
    noticedBy: vitest('test/core/polling/probe-kitchens.test.ts', 'stays reachable after'),
  },
};
