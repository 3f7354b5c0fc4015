import { commandsOf } from '../locations/commands.ts';
import type { Step } from '../webhooks/explanation.ts';
import type { PlacementCause, RefusalCause } from '../wire.ts';

/** The order's location; null while it is not known. */
export type About = { locationId: string | null; integration: string | null };

type Cause = PlacementCause | RefusalCause;

/** Steps for each cause why an order is not at its POS, and why a retry was refused. */
const HELP: { readonly [Code in Cause['code']]: (cause: Extract<Cause, { code: Code }>, about: About) => Step[] } = {
  platform_unreachable: askThePlatform,
  platform_failing: askThePlatform,
  platform_refuses_us: () => [
    {
      say: 'Give the service an ORDER_API_TOKEN that the ordering platform takes.',
      run: 'expediter doctor --only platform',
    },
  ],
  platform_redirects: () => [
    {
      say: 'Give the service the ORDER_API_URL to which the ordering platform redirects: our token is not sent on.',
      run: 'expediter doctor --only platform',
    },
  ],
  platform_answer_too_large: () => [
    { say: 'See what the platform answers for this order: 4 MiB of it are read. Have the query ask for less.' },
  ],
  query_without_order: () => [
    { say: 'Let the document in ORDER_QUERY_FILE ask for a field “order”, by an alias if need be.' },
  ],
  order_mapper_threw: ({ at }) => [
    { say: 'See it for yourself, with the order’s id: expediter platform check.' },
    {
      say: `Mend the module of ORDER_MODULE${at === undefined ? '' : ` at ${at}`}, and start the service with it: the order is tried again then.`,
    },
  ],

  order_missing_yet: () => [
    { say: 'Wait: the platform may lag behind its own signal. After two minutes of that answer it fails.' },
  ],
  order_missing: () => [
    { say: 'Ask the platform why it signals an order that it does not know. Retry the order if it knows it now.' },
  ],
  order_id_invalid: () => [{ say: 'Ask the platform why it signals an id that it calls invalid.' }],
  order_unreadable: ({ issues }) => [
    { say: `Have the platform send it as it should be, or change ORDER_QUERY_FILE: ${fieldsOf(issues)}.` },
    { say: 'It is fetched again every half a minute, and when the service starts with another mapping.' },
  ],
  refused_by_postgres: ({ sqlstate }) => [
    { say: `Report it, with the code ${sqlstate}: the order says what the database cannot hold.` },
  ],
  order_ended: () => [
    {
      say: 'Nothing is left to do: it was held for longer than an order lasts, and its member was told that it failed.',
    },
  ],
  deadline_passed: () => [{ say: 'See why it could not be placed in time: the tries below say so.' }],

  location_paused: () => [
    { say: 'Resume the location once it takes orders again. The time until then does not count.' },
  ],
  location_paused_by_pos: () => [
    { say: 'Wait: it goes on by itself then, or once the POS takes orders again. The time until then does not count.' },
    { say: 'Resume the location if the kitchen takes orders by now.' },
  ],
  no_location: (_cause, { locationId }) => [
    { say: `Configure the location ${locationId ?? ''} with the settings that its POS needs: it is tried at once.` },
  ],
  settings_sealed: ({ keyId }, about) => [
    { say: `Give the service the SETTINGS_KEY “${keyId}”, with which they are encrypted; or store the settings anew.` },
    ...putSettings(about),
  ],
  settings_of_another: (_cause, about) => [
    { say: 'Find out who wrote to the database past the service: these settings are those of another location.' },
    { say: 'Store the settings anew.' },
    ...putSettings(about),
  ],
  unknown_integration: ({ integration }) => [
    { say: `See that PROVIDER_MODULES names the module of ${integration}, for each process of the service.` },
  ],
  wrong_settings: ({ issues }, about) => [
    { say: `Store the settings as they have to be: ${fieldsOf(issues)}.` },
    ...putSettings(about),
  ],
  no_public_url: () => [{ say: 'Set PUBLIC_URL for the service, to the address that the POS calls.' }],

  pos_unreachable: () => [
    { say: 'See whether the POS is switched on and online, and whether its address in the settings is right.' },
  ],
  pos_silent: () => [{ say: 'See whether the POS is up. It may have the order: look there.' }],
  pos_busy: () => [{ say: 'Wait: it is tried again when the POS takes more requests.' }],
  pos_failing: () => [{ say: 'Ask the vendor whether something is wrong with the POS.' }],
  pos_refused_us: (_cause, about) => [
    { say: 'See at the POS whether our access is still granted, then store the credentials that it takes.' },
    ...putSettings(about),
  ],
  pos_set_up_wrong: (_cause, about) => [
    { say: 'Mend what the sentence names: at the POS, or in the settings.' },
    ...putSettings(about),
  ],
  pos_host_refused: (_cause, about) => [
    { say: 'Store the address that the POS has on the internet, with https, if the host is not meant.' },
    ...putSettings(about),
    { say: 'If it is meant, have ALLOW_PRIVATE_HOSTS of the service name it.' },
  ],
  reconnect_needed: (_cause, about) => [
    { say: 'Have the restaurant grant access again, then store the new credentials.' },
    ...putSettings(about),
  ],
  pos_rejected_order: () => [
    { say: 'Mend what the POS says about it, its menu for one, before the next order of this kind comes.' },
  ],
  circuit_open: () => [
    { say: 'Ask the vendor: its POS answers at none of many locations. Orders go on by themselves.' },
  ],
  unexpected_error: () => [{ say: 'Report it: this is a fault in the service or the provider. Its log says more.' }],

  process_died: lookAtThePos,
  pos_cannot_be_asked: lookAtThePos,
  order_absent_yet: () => [{ say: 'Wait: a minute after the request the POS is asked once more, and then believed.' }],
  repeat_refused: lookAtThePos,
  repeat_unrecognised: lookAtThePos,
  deadline_passed_in_doubt: lookAtThePos,
  order_ended_in_doubt: lookAtThePos,
  location_left_pos: ({ integration }) => [
    { say: `Look at the POS that the location had before${integration === null ? '' : `, of ${integration}`}.` },
  ],
  pos_account_changed: () => [{ say: 'Look at the POS that the location had before its settings were changed.' }],
  restored: lookAtThePos,
  no_ticket_seen: () => [{ say: 'Wait: it is sent again.' }],
  cancelled_in_doubt: lookAtThePos,

  pos_cannot_cancel: callTheRestaurant,
  cancel_refused: () => [{ say: 'Nothing: it goes on. Call the restaurant if it has to be cancelled all the same.' }],
  cancel_in_doubt: callTheRestaurant,
  cancel_unconfirmed: callTheRestaurant,
  cancel_ticket_missing: callTheRestaurant,
  cancel_deadline_passed: callTheRestaurant,
  order_erased: callTheRestaurant,

  already_failed: () => [{ say: 'Have the member order again, if the platform has not placed a new order.' }],
  already_sent: () => [{ say: 'Look at the POS: the ticket is there.' }],
  needs_resolve: () => [{ say: 'Look at the POS, then say what you saw.' }],
  call_under_way: () => [{ say: 'Look again in half a minute.' }],
  not_in_doubt: () => [{ say: 'Look again: something else has settled it meanwhile.' }],
  never_sent: () => [{ say: 'Say that it is not there.' }],
  pos_id_taken: ({ serviceOrderId }) => [{ say: `Look at the POS which of its tickets is that of ${serviceOrderId}.` }],
  never_read: () => [{ say: 'Cancel it on the ordering platform: the service sees that as soon as it can read it.' }],
  already_over: () => [{ say: 'Nothing: it has ended.' }],
  not_to_be_cancelled: () => [{ say: 'Have it cancelled first.' }],
};

/** @returns no steps without a cause, or for one of a newer service that this page does not know */
export function helpWith(cause: { code: string } | null, about: About): readonly Step[] {
  if (cause === null || !Object.hasOwn(HELP, cause.code)) return [];
  const help: (cause: never, about: About) => Step[] = HELP[cause.code as Cause['code']];
  return help(cause as never, about);
}

function askThePlatform(): Step[] {
  return [
    {
      say: 'See whether the ordering platform is up, and whether ORDER_API_URL is right.',
      run: 'expediter doctor --only platform',
    },
  ];
}

function callTheRestaurant(): Step[] {
  return [{ say: 'Call the restaurant, name the order’s id at the POS, and say here what it answers.' }];
}

function lookAtThePos(): Step[] {
  return [{ say: 'Look at the POS: is the ticket there? Then say what you saw.' }];
}

function putSettings({ locationId, integration }: About): Step[] {
  if (locationId === null || integration === null) return [];
  const { schema, putSettings } = commandsOf({ locationId, integration });
  return [
    { say: 'See what the settings have to be:', run: schema },
    { say: 'Store all of them, in a file settings.json: what the location had before is replaced.', run: putSettings },
  ];
}

function fieldsOf(issues: readonly { path: string }[]): string {
  return issues.map(({ path }) => path || 'the whole of it').join(', ');
}
