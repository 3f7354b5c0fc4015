import { commandsOf } from '../locations/commands.ts';
import { pageOf } from '../parts/page-of.ts';
import type { Step } from '../webhooks/explanation.ts';
import type { PlacementCause, RefusalCause } from '../wire.ts';

/** The order's location and integration. Null while unknown. */
export type About = { locationId: string | null; integration: string | null };

type Cause = PlacementCause | RefusalCause;

/** Steps for each cause. A cause says why an order is not at its POS, or why a command was refused. */
const HELP: { readonly [Code in Cause['code']]: (cause: Extract<Cause, { code: Code }>, about: About) => Step[] } = {
  platform_unreachable: checkThePlatform,
  platform_failing: checkThePlatform,
  platform_refuses_us: () => [
    {
      say: 'Set ORDER_API_TOKEN to a token that the ordering platform accepts.',
      run: 'expediter doctor --only platform',
    },
  ],
  platform_refuses_order: () => [
    { say: 'See which field of this order the ordering platform refuses: expediter platform check.' },
    {
      say: 'Let the token of ORDER_API_TOKEN read it, or remove the field from the query of ORDER_MODULE. Then retry the order.',
    },
  ],
  platform_redirects: () => [
    {
      say: 'Set ORDER_API_URL to the final address of the ordering platform. Redirects are not followed, because they would leak the token.',
      run: 'expediter doctor --only platform',
    },
  ],
  platform_answer_too_large: () => [
    { say: 'The answer for this order is larger than 4 MiB. Request fewer fields in the query of ORDER_MODULE.' },
  ],
  query_without_order: () => [
    { say: 'Write a module for ORDER_MODULE: the platform does not answer the default query with a field “order”.' },
  ],
  order_mapper_threw: ({ at }) => [
    { say: 'Reproduce the error with the order id: expediter platform check.' },
    {
      say: `If the platform's answer is wrong, ask the platform to correct it. Otherwise correct the mapper${at === undefined ? '' : ` at ${at}`}, and restart the service. The order is then retried.`,
    },
  ],

  order_missing_yet: () => [
    { say: 'Wait. The platform may signal an order before it can return it. After two minutes the order fails.' },
  ],
  order_missing: () => [
    { say: 'Ask the platform team why it signalled an unknown order. If the platform has it now, retry the order.' },
  ],
  order_id_invalid: () => [{ say: 'Ask the platform team why it signalled an id that it rejects as invalid.' }],
  order_skipped: () => [
    { say: 'No action is needed, unless the order should be placed: correct the mapper, and retry the order.' },
  ],
  order_unreadable: ({ issues }) => [
    { say: `Have the platform correct these fields, or change the mapper of ORDER_MODULE: ${fieldsOf(issues)}.` },
    { say: 'The order is fetched again every 30 seconds, and when the service starts with another mapping.' },
  ],
  refused_by_postgres: ({ sqlstate }) => [
    { say: `Report this error with the code ${sqlstate}. The order contains a value that the database cannot store.` },
  ],
  order_ended: () => [
    {
      say: 'No action is needed. The order was held until it expired, and the member was notified that it failed.',
    },
  ],
  deadline_passed: () => [
    { say: 'Fix the last problem that is named above. If none is named, read the attempts below.' },
  ],

  location_paused: () => [
    { say: 'Resume the location when it takes orders again. The time of the pause does not count.' },
  ],
  location_paused_by_pos: () => [
    {
      say: 'Wait. Orders continue automatically at that time, or when the POS takes orders again. The time of the pause does not count.',
    },
    { say: 'If the kitchen already takes orders, resume the location.' },
  ],
  no_location: (_cause, { locationId }) => [
    {
      say: `Configure the location ${locationId ?? ''} with the settings that its POS needs. The order is then retried at once.`,
    },
  ],
  settings_sealed: ({ keyId }, about) => [
    { say: `Add the key “${keyId}” that encrypted the settings to SETTINGS_KEY, or store the settings again.` },
    ...putSettings(about),
  ],
  settings_of_another: (_cause, about) => [
    { say: 'Find out who changed the database directly: these settings belong to another location.' },
    { say: 'Store the settings again.' },
    ...putSettings(about),
  ],
  unknown_integration: ({ integration }) => [
    { say: `Check that PROVIDER_MODULES of every process names the module of ${integration}.` },
  ],
  wrong_settings: ({ issues }, about) => [
    { say: `Correct these settings and store them: ${fieldsOf(issues)}.` },
    ...changeSettings(about),
  ],
  no_public_url: () => [{ say: 'Set PUBLIC_URL of the service to the address that the POS calls.' }],

  pos_unreachable: () => [
    { say: 'Check that the POS is switched on and online, and that its address in the settings is right.' },
  ],
  pos_silent: () => [{ say: 'Check whether the POS is up. It may have the order, so check there.' }],
  pos_busy: () => [{ say: 'Wait. The order is retried when the POS accepts more requests.' }],
  pos_failing: () => [{ say: 'Ask the vendor whether the POS has a problem.' }],
  pos_refused_us: (_cause, about) => [
    { say: 'Check at the POS that our access is still granted. Then store credentials that the POS accepts.' },
    ...changeSettings(about),
  ],
  pos_set_up_wrong: (_cause, about) => [
    { say: 'Fix what the sentence above names: at the POS, or in the settings.' },
    ...changeSettings(about),
  ],
  pos_host_refused: (_cause, about) => [
    { say: 'If this host is wrong, store the public https address of the POS.' },
    ...changeSettings(about),
    { say: 'If this host is right, add it to ALLOW_PRIVATE_HOSTS of the service.' },
  ],
  reconnect_needed: (_cause, about) => [
    { say: 'Ask the restaurant to grant access again. Then store the new credentials.' },
    ...changeSettings(about),
  ],
  pos_rejected_order: () => [
    { say: 'Fix what the POS reports, for example its menu, before the next order of this kind arrives.' },
  ],
  circuit_open: () => [
    {
      say: 'Ask the vendor: the POS answers at none of many locations. Orders continue automatically once it answers.',
    },
  ],
  unexpected_error: () => [
    { say: 'Report this error: it is a fault in the service or the provider. The log has the details.' },
  ],

  process_died: checkThePos,
  pos_cannot_be_asked: checkThePos,
  order_absent_yet: () => [
    { say: 'Wait. One minute after the request, the POS is queried once more, and that answer counts.' },
  ],
  repeat_refused: checkThePos,
  repeat_unrecognised: checkThePos,
  deadline_passed_in_doubt: checkThePos,
  order_ended_in_doubt: checkThePos,
  location_left_pos: ({ integration }) => [
    { say: `Check the former POS of the location${integration === null ? '' : ` (${integration})`} for the ticket.` },
  ],
  pos_account_changed: () => [
    { say: 'Check the POS that the location had before its settings were changed for the ticket.' },
  ],
  restored: checkThePos,
  no_ticket_seen: () => [{ say: 'Wait. The order is sent again.' }],
  cancelled_in_doubt: checkThePos,

  pos_cannot_cancel: callTheRestaurant,
  cancel_refused: () => [{ say: 'If it must be cancelled, call the restaurant.' }],
  cancel_in_doubt: callTheRestaurant,
  cancel_unconfirmed: callTheRestaurant,
  cancel_ticket_missing: callTheRestaurant,
  cancel_deadline_passed: callTheRestaurant,
  order_erased: callTheRestaurant,

  already_failed: () => [{ say: 'If the platform has not placed a new order, ask the member to order again.' }],
  already_sent: () => [{ say: 'Check the POS: the ticket is there.' }],
  needs_resolve: () => [{ say: 'Call the restaurant, or look at the POS. Then enter the answer.' }],
  call_under_way: () => [{ say: 'Try again in 30 seconds.' }],
  absent_too_early: ({ seconds }) => [{ say: `Look at the POS again in ${seconds} seconds, then enter the answer.` }],
  not_in_doubt: () => [{ say: 'Reload the page: the order has been resolved in the meantime.' }],
  never_sent: () => [{ say: 'Enter that the ticket is not there.' }],
  pos_id_taken: ({ serviceOrderId }) => [
    { say: `Check at the POS which of its tickets belongs to ${serviceOrderId}.` },
  ],
  never_read: () => [
    { say: 'Cancel the order on the ordering platform. The service cancels it when it can fetch the order.' },
  ],
  already_over: () => [{ say: 'No action is needed: the order has ended.' }],
  not_to_be_cancelled: () => [{ say: 'Cancel the order first.' }],
};

/** @returns no steps without a cause, or for a cause that a newer service added */
export function helpWith(cause: { code: string } | null, about: About): readonly Step[] {
  if (cause === null || !Object.hasOwn(HELP, cause.code)) return [];
  const help: (cause: never, about: About) => Step[] = HELP[cause.code as Cause['code']];
  return help(cause as never, about);
}

function checkThePlatform(): Step[] {
  return [
    {
      say: 'Check that the ordering platform is up, and that ORDER_API_URL is right.',
      run: 'expediter doctor --only platform',
    },
  ];
}

function callTheRestaurant(): Step[] {
  return [{ say: 'Call the restaurant, name the order by its code, and enter the answer here.' }];
}

function checkThePos(): Step[] {
  return [{ say: 'Call the restaurant, or look at the POS: is the ticket there? Then enter the answer.' }];
}

function changeSettings({ locationId, integration }: About): Step[] {
  if (locationId === null || integration === null) return [];
  const { schema, changeSettings } = commandsOf({ locationId, integration });
  return [
    { say: 'See what each setting means:', run: schema },
    {
      say: 'Change them on the page of the location.',
      link: { name: `Settings of ${locationId}`, href: pageOf.location(locationId) },
    },
    { say: 'Or write those that change to a file settings.json. The others stay:', run: changeSettings },
  ];
}

/** For settings of which none can be read. */
function putSettings({ locationId, integration }: About): Step[] {
  if (locationId === null || integration === null) return [];
  const { schema, putSettings } = commandsOf({ locationId, integration });
  return [
    { say: 'See what each setting means:', run: schema },
    { say: 'Write all settings to a file settings.json. The stored ones cannot be read.', run: putSettings },
  ];
}

function fieldsOf(issues: readonly { path: string }[]): string {
  return issues.map(({ path }) => path || 'the whole value').join(', ');
}
