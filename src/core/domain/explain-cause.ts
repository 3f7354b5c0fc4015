/**
 * The sentences and the next steps of each cause about an order, and of each cause why a location cannot be used. The
 * console uses this file too, so it imports no schema.
 */
import { issueInWords } from './issue-in-words.ts';
import type { PlacementCause, Problem, RefusalCause, Refused } from './placement-cause.ts';
import {
  changeSettings,
  putSettings,
  settingsPage,
  stepsOf,
  vendorOf,
  type Place,
  type Step,
  type ToDo,
} from './remedy.ts';

type Explained<Cause> = {
  /** What happened, as a clause. If the error has a more exact sentence, that is used. */
  says: string | ((cause: Cause) => string);
  toDo: ToDo | ((cause: Cause, about: Place) => ToDo);
};
/** A few words that fit on a ticket. */
type InShort = { inShort: string };
type Of<Cause, Code> = Extract<Cause, { code: Code }>;
type Table = { readonly [Code in PlacementCause['code']]: Explained<Of<PlacementCause, Code>> & InShort } & {
  readonly [Code in RefusalCause['code']]: Explained<Of<RefusalCause, Code>>;
};

/** The causes by which a pause of its location holds an order. */
export const PAUSES: readonly string[] = [
  'location_paused',
  'location_paused_by_pos',
] satisfies PlacementCause['code'][];

const CHECK_THE_PLATFORM: Step = {
  say: 'Check that the ordering platform is up, and that ORDER_API_URL is right.',
  run: 'expediter doctor --only platform',
};
const CHECK_THE_TOKEN = 'Check that the token of ORDER_API_TOKEN is still valid and what its role may read.';
const CHECK_THE_POS = {
  inShort: 'check the POS',
  toDo: 'Call the restaurant, or look at the POS: is the ticket there? Then enter the answer.',
};
const BY_PHONE = {
  inShort: 'cancel by phone',
  toDo: 'Call the restaurant, name the order by its code, and enter the answer.',
};

const CAUSES: Table = {
  // The ordering platform.
  platform_unreachable: {
    says: 'the ordering platform gave no usable answer',
    inShort: 'platform not reachable',
    toDo: [CHECK_THE_PLATFORM],
  },
  platform_failing: {
    says: 'the ordering platform answered with an error',
    inShort: 'platform failing',
    toDo: [CHECK_THE_PLATFORM],
  },
  platform_refuses_us: {
    says: 'the ordering platform denies us access: check ORDER_API_TOKEN',
    inShort: 'platform denies us access',
    toDo: [{ say: CHECK_THE_TOKEN, run: 'expediter doctor --only platform' }],
  },
  platform_refuses_order: {
    says: 'the ordering platform denies us this order or a field of it: check what ORDER_API_TOKEN may read',
    inShort: 'platform refuses order',
    toDo: [
      CHECK_THE_TOKEN,
      'See which field of this order the ordering platform refuses: expediter platform check.',
      'Let the token of ORDER_API_TOKEN read it, or remove the field from the query of ORDER_MODULE. Then retry the order.',
    ],
  },
  platform_refuses_field: {
    says: ({ fields }) =>
      `the ordering platform denies us ${fields.join(', ')}: remove it from the query, or let the token read it`,
    inShort: 'platform refuses field',
    toDo: ({ fields }) => [
      `Remove ${fields.join(', ')} from the query of ORDER_MODULE, or let the token of ORDER_API_TOKEN read it.`,
      'Other orders without this field are read. This order is fetched again every 30 seconds.',
    ],
  },
  platform_refuses_query: {
    says: ({ fields }) =>
      `the ordering platform does not take the query of ORDER_MODULE${fields.length > 0 ? `: look at ${fields.join(', ')}` : ''}`,
    inShort: 'query does not fit',
    toDo: [
      { say: 'Fix the query of ORDER_MODULE. Until then no order is read.', run: 'expediter doctor --only platform' },
    ],
  },
  platform_redirects: {
    says: 'the ordering platform answers with a redirect, which is not followed: check ORDER_API_URL',
    inShort: 'platform redirects us',
    toDo: [
      {
        say: 'Set ORDER_API_URL to the final address of the ordering platform. Redirects are not followed, because they would leak the token.',
        run: 'expediter doctor --only platform',
      },
    ],
  },
  platform_answer_too_large: {
    says: 'the answer of the ordering platform is too large for one order',
    inShort: 'platform answer too large',
    toDo: 'The answer for this order is larger than 4 MiB. Request fewer fields in the query of ORDER_MODULE.',
  },
  query_without_order: {
    says: 'the answer has no field "order": the platform needs a module, see ORDER_MODULE',
    inShort: 'query has no order',
    toDo: 'Write a module for ORDER_MODULE: the platform does not answer the default query with a field “order”.',
  },
  order_mapper_threw: {
    says: ({ error, errorCode, field, at }) =>
      `the mapper of ORDER_MODULE threw ${error}${errorCode === undefined ? '' : ` (${errorCode})`}` +
      `${field === undefined ? '' : ` about ${field}`}${at === undefined ? '' : ` at ${at}`}`,
    inShort: 'order mapper failed',
    toDo: ({ at }) => [
      'Reproduce the error with the order id: expediter platform check.',
      `If the platform's answer is wrong, ask the platform to correct it. Otherwise correct the mapper${at === undefined ? '' : ` at ${at}`}, and restart the service. The order is then retried.`,
    ],
  },

  // The order.
  order_missing_yet: {
    says: 'the platform has no such order yet',
    inShort: 'not at the platform yet',
    toDo: 'Wait. The platform may signal an order before it can return it. After two minutes the order fails.',
  },
  order_missing: {
    says: 'the platform has no such order',
    inShort: 'not at the platform',
    toDo: 'Ask the platform team why it signalled an unknown order. If the platform has it now, retry the order.',
  },
  order_id_invalid: {
    says: 'the ordering platform rejects the order id as invalid',
    inShort: 'id is invalid',
    toDo: 'Ask the platform team why it signalled an id that it rejects as invalid.',
  },
  order_skipped: {
    says: ({ reason }) => `the mapper skipped the order${reason === undefined ? '' : `: ${reason}`}`,
    inShort: 'skipped by the mapper',
    toDo: 'No action is needed, unless the order should be placed: correct the mapper, and retry the order.',
  },
  order_cancelled: {
    says: 'the platform has cancelled the order, and nothing else of it can be read',
    inShort: 'cancelled on the platform',
    toDo: 'No action is needed. If the order is in doubt, ask the restaurant whether it has the ticket, and let it cancel the ticket.',
  },
  order_unreadable: {
    says: ({ issues }) => `the order cannot be read: ${issues.map(issueInWords).join('. ')}`,
    inShort: 'order not readable',
    toDo: ({ issues }) => [
      `Have the platform correct these fields, or change the mapper of ORDER_MODULE: ${fieldsOf(issues)}.`,
      'The order is fetched again every 30 seconds, and when the service starts with another mapping.',
    ],
  },
  refused_by_postgres: {
    says: ({ sqlstate }) => `the order cannot be stored: Postgres refuses it with ${sqlstate}`,
    inShort: 'order cannot be stored',
    toDo: ({ sqlstate }) =>
      `Report this error with the code ${sqlstate}. The order contains a value that the database cannot store.`,
  },
  order_ended: {
    says: 'the order has ended',
    inShort: 'order has ended',
    toDo: 'No action is needed. The order was held until it expired, and the member was notified that it failed.',
  },
  deadline_passed: {
    says: 'the deadline has passed',
    inShort: 'deadline passed',
    toDo: 'Fix the last problem that is named above. If none is named, read the attempts below.',
  },

  // The location.
  location_paused: {
    says: 'the location is paused',
    inShort: 'location paused',
    toDo: 'Resume the location when it takes orders again. The time of the pause does not count.',
  },
  location_paused_by_pos: {
    says: ({ until }) => `the location is paused by its POS until ${until}`,
    inShort: 'paused by its POS',
    toDo: [
      'Wait. Orders continue automatically at that time, or when the POS takes orders again. The time of the pause does not count.',
      'If the kitchen already takes orders, resume the location.',
    ],
  },
  no_location: {
    says: 'the location is not configured',
    inShort: 'location not configured',
    toDo: [
      {
        say: 'Add the location, with the settings that its POS needs. The order is then retried at once.',
        link: { name: 'Add a location', href: '/console/locations/new' },
      },
    ],
  },
  settings_sealed: {
    says: 'the settings of the location cannot be decrypted',
    inShort: 'settings cannot be decrypted',
    toDo: ({ keyId }, about) => [
      `Add the key "${keyId}" that encrypted the settings to SETTINGS_KEY: it is missing, or has another value. Or store the settings again.`,
      ...putSettings(about),
    ],
  },
  settings_of_another: {
    says: 'the settings of the location were encrypted for another location',
    inShort: 'settings of another location',
    toDo: (_cause, about) => [
      'Find out who changed the database directly: these settings belong to another location.',
      ...putSettings(about),
    ],
  },
  unknown_integration: {
    says: ({ integration }) => `no integration is called "${integration}"`,
    inShort: 'integration missing',
    toDo: ({ integration }) => `Check that PROVIDER_MODULES of every process names the module of ${integration}.`,
  },
  wrong_settings: {
    says: 'the settings of the location do not match what its integration needs',
    inShort: 'wrong settings',
    toDo: ({ issues }, about) => [
      `Correct these settings: ${fieldsOf(issues)}. Then store them.`,
      ...changeSettings(about),
    ],
  },
  no_public_url: {
    says: 'PUBLIC_URL is unset, and this POS signs the URL that it calls',
    inShort: 'PUBLIC_URL missing',
    toDo: 'Set PUBLIC_URL of every process to the address that the POS calls.',
  },

  // The POS.
  pos_unreachable: {
    says: 'the POS cannot be reached',
    inShort: 'POS not reachable',
    toDo: (_cause, about) => [
      {
        say: 'Check that the POS is switched on and online, and that its address in the settings is right.',
        ...settingsPage(about),
      },
    ],
  },
  pos_silent: {
    says: 'the POS did not answer',
    inShort: 'no answer',
    toDo: 'Check whether the POS is up. It may have the order, so check there.',
  },
  pos_busy: {
    says: 'the request limit of the POS is reached',
    inShort: 'POS busy',
    toDo: 'Wait until the POS accepts more requests.',
  },
  pos_failing: {
    says: 'the POS answered with an error',
    inShort: 'POS failing',
    toDo: 'Ask the vendor whether the POS has a problem.',
  },
  pos_refused_us: {
    says: 'the POS denies us access',
    inShort: 'POS denies us access',
    toDo: (_cause, about) => [
      'Check at the POS that our access is still granted. Then store credentials that the POS accepts.',
      ...changeSettings(about),
    ],
  },
  pos_set_up_wrong: {
    says: 'the settings, or the set-up at the POS, must be fixed',
    inShort: 'POS misconfigured',
    toDo: (_cause, about) => ['Fix what the problem names: at the POS, or in the settings.', ...changeSettings(about)],
  },
  pos_host_refused: {
    says: ({ reason }) =>
      reason === 'plain http'
        ? 'its URL in the settings is http, and ALLOW_PRIVATE_HOSTS does not name its host: use https, or add the host there'
        : `this host in the settings has a ${reason} address, and ALLOW_PRIVATE_HOSTS does not name it`,
    inShort: 'host not allowed',
    toDo: (_cause, about) => [
      'If this host is wrong, store the public https address of the POS.',
      ...changeSettings(about),
      'If this host is right, add it to ALLOW_PRIVATE_HOSTS of the service.',
    ],
  },
  reconnect_needed: {
    says: 'reconnect needed: the restaurant must grant access again',
    inShort: 'reconnect needed',
    toDo: (_cause, about) => [
      'Ask the restaurant to grant access again. Then store the new credentials.',
      ...changeSettings(about),
    ],
  },
  pos_rejected_order: {
    says: 'the POS does not take the order',
    inShort: 'POS refused it',
    toDo: 'Fix what the POS reports, for example its menu, before the next order of this kind arrives.',
  },
  circuit_open: {
    says: 'the POS answers at none of many locations: only a few orders at a time are tried',
    inShort: 'POS down everywhere',
    toDo: 'Ask the vendor: the POS answers at none of many locations. Orders continue automatically once it answers.',
  },
  unexpected_error: {
    says: 'an unexpected error occurred',
    inShort: 'unexpected error',
    toDo: 'Report this error: it is a fault in the service or the provider. The log has the details.',
  },

  // The POS may have the order.
  process_died: { says: 'the process ended during the call', ...CHECK_THE_POS },
  pos_cannot_be_asked: { says: 'the POS may have the order and cannot be asked', ...CHECK_THE_POS },
  order_absent_yet: {
    says: 'the POS does not have the order yet',
    inShort: 'POS is checked again',
    toDo: 'Wait. One minute after the request, the POS is queried once more, and that answer counts.',
  },
  repeat_refused: { says: 'the POS refuses the repeated request', ...CHECK_THE_POS },
  repeat_unrecognised: {
    says: 'the POS no longer recognises a repeated request, and may have the order',
    ...CHECK_THE_POS,
  },
  deadline_passed_in_doubt: { says: 'the deadline has passed, and the POS may have the order', ...CHECK_THE_POS },
  order_ended_in_doubt: { says: 'the order has ended, and the POS may have it', ...CHECK_THE_POS },
  location_left_pos: {
    says: 'the order may be at a POS that the location no longer uses',
    inShort: 'check the former POS',
    toDo: ({ integration }, about) =>
      `Check the former POS of the location${integration === null ? '' : ` (${vendorOf(about, integration)})`} for the ticket.`,
  },
  pos_account_changed: {
    says: 'the order may be at the POS that the location had before its settings were changed',
    inShort: 'check the former POS',
    toDo: 'Check the POS that the location had before its settings were changed for the ticket.',
  },
  restored: { says: 'after a restore: the POS may have it', ...CHECK_THE_POS },
  no_ticket_seen: {
    says: 'an operator says that the POS does not have the order',
    inShort: 'sent again',
    toDo: 'Wait. The order is sent again.',
  },
  cancelled_in_doubt: { says: 'the order is cancelled, and the POS may have it', ...CHECK_THE_POS },

  // The cancellation at the POS.
  pos_cannot_cancel: {
    says: 'the order cannot be cancelled through this POS: telephone the restaurant',
    ...BY_PHONE,
  },
  cancel_refused: {
    says: 'the POS refuses to cancel the order',
    inShort: 'POS refused to cancel',
    toDo: 'If it must be cancelled, call the restaurant.',
  },
  cancel_in_doubt: { says: 'the POS was asked to cancel the order, but its answer was lost', ...BY_PHONE },
  cancel_unconfirmed: { says: 'the POS was asked to cancel the order, but has not confirmed it', ...BY_PHONE },
  cancel_ticket_missing: { says: 'the POS took the order, but has no such order now', ...BY_PHONE },
  cancel_deadline_passed: { says: 'the POS could not be asked in time to cancel the order', ...BY_PHONE },
  order_erased: { says: 'the data of the order is erased, and the request to the POS needs it', ...BY_PHONE },

  // A command changes nothing.
  already_failed: {
    says: 'the order has failed, which is final: place a new order on the platform',
    toDo: 'If the platform has not placed a new order, ask the member to order again.',
  },
  already_sent: { says: 'the ticket is at the POS already', toDo: 'Check the POS: the ticket is there.' },
  needs_resolve: {
    says: 'the POS may have the order, so it is not repeated: check the POS, then resolve the order',
    toDo: 'Call the restaurant, or look at the POS. Then enter the answer.',
  },
  call_under_way: {
    says: 'a call about the order is running: try again when it ends, mostly within half a minute',
    toDo: 'Try again in 30 seconds.',
  },
  absent_too_early: {
    says: ({ seconds }) => `the POS may still create the ticket: look at it again in ${seconds} seconds`,
    toDo: ({ seconds }) => `Look at the POS again in ${seconds} seconds, then enter the answer.`,
  },
  not_in_doubt: {
    says: ({ state }) => `the order is not in doubt but ${state}`,
    toDo: 'Reload the page: the order has been resolved in the meantime.',
  },
  never_sent: { says: 'the order was never sent to a POS', toDo: 'Enter that the ticket is not there.' },
  pos_id_taken: {
    says: ({ providerOrderId, serviceOrderId }) =>
      `the POS id "${providerOrderId}" belongs to order "${serviceOrderId}"`,
    toDo: ({ serviceOrderId }) => `Check at the POS which of its tickets belongs to ${serviceOrderId}.`,
  },
  never_read: {
    says: 'the order was never read from the platform',
    toDo: 'Cancel the order on the ordering platform. The service cancels it when it can fetch the order.',
  },
  already_over: { says: 'the order has ended', toDo: 'No action is needed: the order has ended.' },
  not_to_be_cancelled: { says: 'no cancellation of the order was requested', toDo: 'Cancel the order first.' },
  change_settled: {
    says: 'no such change of the order waits for an answer: it was answered, taken back or followed by another',
    toDo: 'Reload the page: it shows the newest change.',
  },
};

/** A cause as it is stored, which a newer version may have written. */
type Stored = { code: string } | null;
type Row = Explained<never> & Partial<InShort>;

function rowOf(cause: Stored): Row | undefined {
  return cause !== null && Object.hasOwn(CAUSES, cause.code) ? CAUSES[cause.code as keyof Table] : undefined;
}

export function describeCause(cause: PlacementCause | RefusalCause): string {
  const { says }: Row = CAUSES[cause.code];
  return typeof says === 'string' ? says : says(cause as never);
}

export function problemOf(cause: PlacementCause): Problem {
  return { problem: describeCause(cause), cause };
}

export function refused(cause: RefusalCause): Refused {
  return { refused: describeCause(cause), cause };
}

/** What is wrong with an order, in a few words. Undefined without a cause, or for one that a newer version added. */
export function inShort(cause: Stored): string | undefined {
  return rowOf(cause)?.inShort;
}

/** Orders that did not reach their POS, in a few words. */
export function notReachedInWords({ orders, cause }: { orders: number; cause: Stored }): string {
  return [`${orders === 1 ? '1 order' : `${orders} orders`} did not reach the POS`, inShort(cause) ?? []]
    .flat()
    .join(': ');
}

/** What to do. No steps without a cause, or for one that a newer version added. */
export function helpWith(cause: Stored, about: Place): Step[] {
  const toDo = rowOf(cause)?.toDo ?? [];
  return stepsOf(typeof toDo === 'function' ? toDo(cause as never, about) : toDo);
}

function fieldsOf(issues: readonly { path: string }[]): string {
  return issues.map(({ path }) => path || 'the whole value').join(', ');
}
