/**
 * Causes why a placement waits, is held, is in doubt or failed, why a cancellation is not complete, and why a command
 * about either is refused. Closed lists: a code never changes its details or its meaning. Details must not hold a
 * secret or a member's data.
 */
import { z } from 'zod';
import { CauseText } from './cause-text.ts';
import { issueInWords } from './issue-in-words.ts';
import { LocationCause } from './location-cause.ts';
import { PLACEMENT_STATES } from './placement.ts';
import { ShapeIssue } from './shape-issues.ts';

const HttpStatus = z.int().optional();

/** Why a host in a location's settings is not called: the kind of its address, or no TLS. */
const REFUSED_HOSTS = ['loopback', 'link-local', 'private', 'reserved', 'plain http'] as const;
export type RefusedHost = (typeof REFUSED_HOSTS)[number];

export const PlacementCause = z.discriminatedUnion('code', [
  // The ordering platform.
  z.object({ code: z.literal('platform_unreachable') }),
  z.object({ code: z.literal('platform_failing'), httpStatus: HttpStatus }),
  z.object({ code: z.literal('platform_refuses_us'), httpStatus: HttpStatus }),
  z.object({ code: z.literal('platform_refuses_order'), httpStatus: HttpStatus }),
  /** Redirects are not followed, because the other server would get our token. */
  z.object({ code: z.literal('platform_redirects'), httpStatus: HttpStatus }),
  z.object({ code: z.literal('platform_answer_too_large') }),
  z.object({ code: z.literal('query_without_order') }),
  /** `error` is the class of the error, `at` its place in the module, such as `map-order.ts:42`. */
  z.object({
    code: z.literal('order_mapper_threw'),
    error: CauseText,
    errorCode: CauseText.optional(),
    field: CauseText.optional(),
    at: CauseText.optional(),
  }),

  // The order.
  z.object({ code: z.literal('order_missing_yet') }),
  z.object({ code: z.literal('order_missing') }),
  z.object({ code: z.literal('order_id_invalid'), httpStatus: HttpStatus }),
  /** The mapper called `skip`. `reason` is left out if it is more than one word. */
  z.object({ code: z.literal('order_skipped'), reason: CauseText.optional() }),
  z.object({ code: z.literal('order_unreadable'), issues: z.array(ShapeIssue) }),
  z.object({ code: z.literal('refused_by_postgres'), sqlstate: CauseText }),
  z.object({ code: z.literal('order_ended') }),
  z.object({ code: z.literal('deadline_passed') }),

  // The location.
  z.object({ code: z.literal('location_paused') }),
  /** The kitchen takes no orders. Orders resume automatically at `until`, or earlier if the POS ends the pause. */
  z.object({ code: z.literal('location_paused_by_pos'), until: z.iso.datetime() }),
  ...LocationCause.options,

  // The POS. Derived from the kind of error and the HTTP status, if the provider gives no cause.
  z.object({ code: z.literal('pos_unreachable') }),
  /** A request was sent, but not answered. */
  z.object({ code: z.literal('pos_silent') }),
  z.object({ code: z.literal('pos_busy'), httpStatus: HttpStatus }),
  z.object({ code: z.literal('pos_failing'), httpStatus: HttpStatus }),
  z.object({ code: z.literal('pos_refused_us'), httpStatus: HttpStatus }),
  /** A setting other than the credentials is wrong, or the POS itself is set up wrongly. */
  z.object({ code: z.literal('pos_set_up_wrong'), httpStatus: HttpStatus }),
  /** Nothing was sent: ALLOW_PRIVATE_HOSTS does not name the host in the settings, which is private or without TLS. */
  z.object({ code: z.literal('pos_host_refused'), reason: z.enum(REFUSED_HOSTS) }),
  /** A refresh token is lost. Only the restaurant can grant another. */
  z.object({ code: z.literal('reconnect_needed'), httpStatus: HttpStatus }),
  z.object({ code: z.literal('pos_rejected_order'), httpStatus: HttpStatus }),
  z.object({ code: z.literal('circuit_open') }),
  z.object({ code: z.literal('unexpected_error') }),

  // The POS may have the order.
  z.object({ code: z.literal('process_died') }),
  z.object({ code: z.literal('pos_cannot_be_asked') }),
  z.object({ code: z.literal('order_absent_yet') }),
  z.object({ code: z.literal('repeat_refused'), httpStatus: HttpStatus }),
  z.object({ code: z.literal('repeat_unrecognised') }),
  z.object({ code: z.literal('deadline_passed_in_doubt') }),
  z.object({ code: z.literal('order_ended_in_doubt') }),
  /** `integration` is the former integration of the location; null if it is unknown. */
  z.object({ code: z.literal('location_left_pos'), integration: CauseText.nullable() }),
  z.object({ code: z.literal('pos_account_changed') }),
  /** Set by `expediter recover` after a database restore. */
  z.object({ code: z.literal('restored') }),
  /** An operator reported that there is no ticket. */
  z.object({ code: z.literal('no_ticket_seen') }),
  /** The order is not sent again. Its cancellation settles the doubt. */
  z.object({ code: z.literal('cancelled_in_doubt') }),

  // The cancellation at the POS.
  z.object({ code: z.literal('pos_cannot_cancel') }),
  z.object({ code: z.literal('cancel_refused'), httpStatus: HttpStatus }),
  /** A request was sent, and its answer was lost. */
  z.object({ code: z.literal('cancel_in_doubt') }),
  /** The POS took the request, but did not report the outcome in time. */
  z.object({ code: z.literal('cancel_unconfirmed') }),
  z.object({ code: z.literal('cancel_ticket_missing') }),
  z.object({ code: z.literal('cancel_deadline_passed') }),
  /** The request to the POS needs the order's contents, which are erased. */
  z.object({ code: z.literal('order_erased') }),
]);
export type PlacementCause = z.infer<typeof PlacementCause>;
export type PlacementCode = PlacementCause['code'];

/** A stored cause. A newer version may have stored a code that this version does not know. */
export const StoredPlacementCause = z
  .union([PlacementCause, z.looseObject({ code: z.string() })])
  .meta({ description: 'Why it waits, is held, is in doubt or failed, as data.' });

export const PLACEMENT_CODES: readonly PlacementCode[] = PlacementCause.options.map(
  (option) => option.shape.code.value,
);

/** Causes why an operator's command about a placement changes nothing. */
export const RefusalCause = z.discriminatedUnion('code', [
  z.object({ code: z.literal('already_failed') }),
  z.object({ code: z.literal('already_sent') }),
  z.object({ code: z.literal('needs_resolve') }),
  z.object({ code: z.literal('call_under_way') }),
  /** The last request ended less than a minute ago, and may still create a ticket. */
  z.object({ code: z.literal('absent_too_early'), seconds: z.int() }),
  z.object({ code: z.literal('not_in_doubt'), state: z.enum(PLACEMENT_STATES) }),
  z.object({ code: z.literal('never_sent') }),
  z.object({ code: z.literal('pos_id_taken'), providerOrderId: CauseText, serviceOrderId: CauseText }),
  z.object({ code: z.literal('never_read') }),
  z.object({ code: z.literal('already_over') }),
  z.object({ code: z.literal('not_to_be_cancelled') }),
]);
export type RefusalCause = z.infer<typeof RefusalCause>;

type Sentences<Cause extends { code: string }> = {
  [Code in Cause['code']]: string | ((cause: Extract<Cause, { code: Code }>) => string);
};

/** Sentences by code. If the error has a more exact sentence, that is used. */
const SENTENCES: Sentences<PlacementCause | RefusalCause> = {
  platform_unreachable: 'the ordering platform gave no usable answer',
  platform_failing: 'the ordering platform answered with an error',
  platform_refuses_us: 'the ordering platform denies us access: check ORDER_API_TOKEN',
  platform_refuses_order:
    'the ordering platform denies us this order or a field of it: check what ORDER_API_TOKEN may read',
  platform_redirects: 'the ordering platform answers with a redirect, which is not followed: check ORDER_API_URL',
  platform_answer_too_large: 'the answer of the ordering platform is too large for one order',
  query_without_order: 'the answer has no field "order": the platform needs a module, see ORDER_MODULE',
  order_mapper_threw: ({ error, errorCode, field, at }) =>
    `the mapper of ORDER_MODULE threw ${error}${errorCode === undefined ? '' : ` (${errorCode})`}` +
    `${field === undefined ? '' : ` about ${field}`}${at === undefined ? '' : ` at ${at}`}`,

  order_missing_yet: 'the platform has no such order yet',
  order_missing: 'the platform has no such order',
  order_id_invalid: 'the ordering platform rejects the order id as invalid',
  order_skipped: ({ reason }) => `the mapper skipped the order${reason === undefined ? '' : `: ${reason}`}`,
  order_unreadable: ({ issues }) => `the order cannot be read: ${issues.map(issueInWords).join('. ')}`,
  refused_by_postgres: ({ sqlstate }) => `the order cannot be stored: Postgres refuses it with ${sqlstate}`,
  order_ended: 'the order has ended',
  deadline_passed: 'the deadline has passed',

  location_paused: 'the location is paused',
  location_paused_by_pos: ({ until }) => `the location is paused by its POS until ${until}`,
  no_location: 'the location is not configured',
  settings_sealed: 'the settings of the location cannot be decrypted',
  settings_of_another: 'the settings of the location were encrypted for another location',
  unknown_integration: ({ integration }) => `no integration is called "${integration}"`,
  wrong_settings: 'the settings of the location do not match what its integration needs',
  no_public_url: 'PUBLIC_URL is unset, and this POS signs the URL that it calls',

  pos_unreachable: 'the POS cannot be reached',
  pos_silent: 'the POS did not answer',
  pos_busy: 'the request limit of the POS is reached',
  pos_failing: 'the POS answered with an error',
  pos_refused_us: 'the POS denies us access',
  pos_set_up_wrong: 'the settings, or the set-up at the POS, must be fixed',
  pos_host_refused: ({ reason }) =>
    reason === 'plain http'
      ? 'its URL in the settings is http: use https, or name the host in ALLOW_PRIVATE_HOSTS'
      : `this host in the settings has a ${reason} address, and ALLOW_PRIVATE_HOSTS does not name it`,
  reconnect_needed: 'reconnect needed: the restaurant must grant access again',
  pos_rejected_order: 'the POS does not take the order',
  circuit_open: 'the POS answers at none of many locations: only a few orders at a time are tried',
  unexpected_error: 'an unexpected error occurred',

  process_died: 'the process ended during the call',
  pos_cannot_be_asked: 'the POS may have the order and cannot be asked',
  order_absent_yet: 'the POS does not have the order yet',
  repeat_refused: 'the POS refuses the repeated request',
  repeat_unrecognised: 'the POS no longer recognises a repeated request, and may have the order',
  deadline_passed_in_doubt: 'the deadline has passed, and the POS may have the order',
  order_ended_in_doubt: 'the order has ended, and the POS may have it',
  location_left_pos: ({ integration }) =>
    `the order may be at the POS of "${integration}", which the location no longer uses`,
  pos_account_changed: 'the order may be at the POS that the location had before its settings were changed',
  restored: 'after a restore: the POS may have it',
  no_ticket_seen: 'an operator says that the POS does not have the order',
  cancelled_in_doubt: 'the order is cancelled, and the POS may have it',

  pos_cannot_cancel: 'the order cannot be cancelled through this POS: telephone the restaurant',
  cancel_refused: 'the POS refuses to cancel the order',
  cancel_in_doubt: 'the POS was asked to cancel the order, but its answer was lost',
  cancel_unconfirmed: 'the POS was asked to cancel the order, but has not confirmed it',
  cancel_ticket_missing: 'the POS took the order, but has no such order now',
  cancel_deadline_passed: 'the POS could not be asked in time to cancel the order',
  order_erased: 'the data of the order is erased, and the request to the POS needs it',

  already_failed: 'the order has failed, which is final: place a new order on the platform',
  already_sent: 'the ticket is at the POS already',
  needs_resolve: 'the POS may have the order, so it is not repeated: check the POS, then resolve the order',
  call_under_way: 'a call about the order is running: try again when it ends, mostly within half a minute',
  absent_too_early: ({ seconds }) => `the POS may still create the ticket: look at it again in ${seconds} seconds`,
  not_in_doubt: ({ state }) => `the order is not in doubt but ${state}`,
  never_sent: 'the order was never sent to a POS',
  pos_id_taken: ({ providerOrderId, serviceOrderId }) =>
    `the POS id "${providerOrderId}" belongs to order "${serviceOrderId}"`,
  never_read: 'the order was never read from the platform',
  already_over: 'the order has ended',
  not_to_be_cancelled: 'no cancellation of the order was requested',
};

export function describeCause(cause: PlacementCause | RefusalCause): string {
  const sentence = SENTENCES[cause.code] as string | ((cause: PlacementCause | RefusalCause) => string);
  return typeof sentence === 'string' ? sentence : sentence(cause);
}

/** A placement's problem: a sentence for people, a cause for programs. */
export type Problem = { problem: string; cause: PlacementCause };

export function problemOf(cause: PlacementCause): Problem {
  return { problem: describeCause(cause), cause };
}

export type Refused = { refused: string; cause: RefusalCause };

export function refused(cause: RefusalCause): Refused {
  return { refused: describeCause(cause), cause };
}
