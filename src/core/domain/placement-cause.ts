/**
 * Causes why a placement waits, is held, is in doubt or failed, why a cancellation is not over, and why a command about
 * either is refused. Closed lists: a code never changes its details or its meaning. Details never hold a secret or a
 * member's data.
 */
import { z } from 'zod';
import { CauseText } from './cause-text.ts';
import { issueInWords } from './issue-in-words.ts';
import { LocationCause } from './location-cause.ts';
import { PLACEMENT_STATES } from './placement.ts';
import { ShapeIssue } from './shape-issues.ts';

const HttpStatus = z.int().optional();

/** Why a host in a location's settings is not called: what its address is, or that there is no TLS. */
const REFUSED_HOSTS = ['loopback', 'link-local', 'private', 'reserved', 'plain http'] as const;
export type RefusedHost = (typeof REFUSED_HOSTS)[number];

export const PlacementCause = z.discriminatedUnion('code', [
  // The ordering platform.
  z.object({ code: z.literal('platform_unreachable') }),
  z.object({ code: z.literal('platform_failing'), httpStatus: HttpStatus }),
  z.object({ code: z.literal('platform_refuses_us'), httpStatus: HttpStatus }),
  /** Followed, it would carry our token elsewhere. */
  z.object({ code: z.literal('platform_redirects'), httpStatus: HttpStatus }),
  z.object({ code: z.literal('platform_answer_too_large') }),
  z.object({ code: z.literal('query_without_order') }),
  /** The code of ORDER_MODULE. `error` is the class, `at` the place, such as `map-order.ts:42`. */
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
  z.object({ code: z.literal('order_unreadable'), issues: z.array(ShapeIssue) }),
  z.object({ code: z.literal('refused_by_postgres'), sqlstate: CauseText }),
  z.object({ code: z.literal('order_ended') }),
  z.object({ code: z.literal('deadline_passed') }),

  // The location.
  z.object({ code: z.literal('location_paused') }),
  /** The kitchen takes no orders. They go on by themselves then, or as soon as it does. */
  z.object({ code: z.literal('location_paused_by_pos'), until: z.iso.datetime() }),
  ...LocationCause.options,

  // The POS: causes by the kind of error and the HTTP status, for a provider that gives none.
  z.object({ code: z.literal('pos_unreachable') }),
  /** A request was sent. */
  z.object({ code: z.literal('pos_silent') }),
  z.object({ code: z.literal('pos_busy'), httpStatus: HttpStatus }),
  z.object({ code: z.literal('pos_failing'), httpStatus: HttpStatus }),
  z.object({ code: z.literal('pos_refused_us'), httpStatus: HttpStatus }),
  /** Another setting, or something at the POS, is wrong. */
  z.object({ code: z.literal('pos_set_up_wrong'), httpStatus: HttpStatus }),
  /** Nothing was sent: the settings lead to a host that ALLOW_PRIVATE_HOSTS would have to name. */
  z.object({ code: z.literal('pos_host_refused'), reason: z.enum(REFUSED_HOSTS) }),
  /** A refresh token is lost. Only the restaurant can grant another. */
  z.object({ code: z.literal('reconnect_needed'), httpStatus: HttpStatus }),
  z.object({ code: z.literal('pos_rejected_order'), httpStatus: HttpStatus }),
  z.object({ code: z.literal('circuit_open') }),
  z.object({ code: z.literal('unexpected_error') }),

  // The doubt whether the POS has the order.
  z.object({ code: z.literal('process_died') }),
  z.object({ code: z.literal('pos_cannot_be_asked') }),
  z.object({ code: z.literal('order_absent_yet') }),
  z.object({ code: z.literal('repeat_refused'), httpStatus: HttpStatus }),
  z.object({ code: z.literal('repeat_unrecognised') }),
  z.object({ code: z.literal('deadline_passed_in_doubt') }),
  z.object({ code: z.literal('order_ended_in_doubt') }),
  /** `integration` is the location's former one; null if unknown. */
  z.object({ code: z.literal('location_left_pos'), integration: CauseText.nullable() }),
  z.object({ code: z.literal('pos_account_changed') }),
  /** Written by whoever restores the database, as the runbook says. */
  z.object({ code: z.literal('restored') }),
  /** An operator saw no ticket. */
  z.object({ code: z.literal('no_ticket_seen') }),
  /** It is not sent again: its cancellation finds out. */
  z.object({ code: z.literal('cancelled_in_doubt') }),

  // The cancellation at the POS.
  z.object({ code: z.literal('pos_cannot_cancel') }),
  z.object({ code: z.literal('cancel_refused'), httpStatus: HttpStatus }),
  /** A request went out, and its answer was lost. */
  z.object({ code: z.literal('cancel_in_doubt') }),
  /** The POS took the request, and did not say in time what became of it. */
  z.object({ code: z.literal('cancel_unconfirmed') }),
  z.object({ code: z.literal('cancel_ticket_missing') }),
  z.object({ code: z.literal('cancel_deadline_passed') }),
  /** The POS is asked with the order's contents, which are gone. */
  z.object({ code: z.literal('order_erased') }),
]);
export type PlacementCause = z.infer<typeof PlacementCause>;
export type PlacementCode = PlacementCause['code'];

/** A stored cause. A newer version may have written one that this version does not know. */
export const StoredPlacementCause = z
  .union([PlacementCause, z.looseObject({ code: z.string() })])
  .meta({ description: 'Why it waits, is held, is in doubt or failed, as data.' });

/** Codes of all causes of placements. */
export const PLACEMENT_CODES: readonly PlacementCode[] = PlacementCause.options.map(
  (option) => option.shape.code.value,
);

/** Causes why an operator's command about a placement changes nothing. */
export const RefusalCause = z.discriminatedUnion('code', [
  z.object({ code: z.literal('already_failed') }),
  z.object({ code: z.literal('already_sent') }),
  z.object({ code: z.literal('needs_resolve') }),
  z.object({ code: z.literal('call_under_way') }),
  z.object({ code: z.literal('not_in_doubt'), state: z.enum(PLACEMENT_STATES) }),
  z.object({ code: z.literal('never_sent') }),
  z.object({ code: z.literal('pos_id_taken'), providerOrderId: CauseText, serviceOrderId: CauseText }),
  z.object({ code: z.literal('never_read') }),
  z.object({ code: z.literal('already_over') }),
  z.object({ code: z.literal('not_to_be_cancelled') }),
]);
export type RefusalCause = z.infer<typeof RefusalCause>;
export type RefusalCode = RefusalCause['code'];

/** Codes of all refusals of a command. */
export const REFUSAL_CODES: readonly RefusalCode[] = RefusalCause.options.map((option) => option.shape.code.value);

type Sentences<Cause extends { code: string }> = {
  [Code in Cause['code']]: string | ((cause: Extract<Cause, { code: Code }>) => string);
};

/** Sentences by code. An error's own, more exact sentence takes precedence. */
const SENTENCES: Sentences<PlacementCause | RefusalCause> = {
  platform_unreachable: 'the ordering platform gave no usable answer',
  platform_failing: 'the ordering platform answered with an error',
  platform_refuses_us: 'the ordering platform refuses us: see ORDER_API_TOKEN',
  platform_redirects: 'the ordering platform redirects us, which is not followed: see ORDER_API_URL',
  platform_answer_too_large: 'the answer of the ordering platform is too large for one order',
  query_without_order: 'the answer has no field "order": see ORDER_QUERY_FILE',
  order_mapper_threw: ({ error, errorCode, field, at }) =>
    `the mapper of ORDER_MODULE threw ${error}${errorCode === undefined ? '' : ` (${errorCode})`}` +
    `${field === undefined ? '' : ` about ${field}`}${at === undefined ? '' : ` at ${at}`}`,

  order_missing_yet: 'the platform has no such order yet',
  order_missing: 'the platform has no such order',
  order_id_invalid: 'the ordering platform calls the order id invalid',
  order_unreadable: ({ issues }) => `the order cannot be read: ${issues.map(issueInWords).join('. ')}`,
  refused_by_postgres: ({ sqlstate }) => `the order cannot be stored: Postgres refuses it with ${sqlstate}`,
  order_ended: 'the order has ended',
  deadline_passed: 'the deadline has passed',

  location_paused: 'the location is paused',
  location_paused_by_pos: ({ until }) => `the location is paused by its POS until ${until}`,
  no_location: 'the location is not configured',
  settings_sealed: 'the settings of the location cannot be decrypted',
  settings_of_another: 'the settings of the location were sealed for another one',
  unknown_integration: ({ integration }) => `no integration is called "${integration}"`,
  wrong_settings: 'the settings of the location are not what its integration needs',
  no_public_url: 'PUBLIC_URL is unset, and this POS signs the URL that it calls',

  pos_unreachable: 'there is no connection to the POS',
  pos_silent: 'the POS gave no answer',
  pos_busy: 'the request limit of the POS is reached',
  pos_failing: 'the POS answered with an error',
  pos_refused_us: 'the POS refuses us',
  pos_set_up_wrong: 'the settings, or what is set up at the POS, must be mended',
  pos_host_refused: ({ reason }) =>
    reason === 'plain http'
      ? 'its URL in the settings is http; it takes https, or ALLOW_PRIVATE_HOSTS to name the host'
      : `this host in the settings has a ${reason} address, which ALLOW_PRIVATE_HOSTS does not name`,
  reconnect_needed: 'reconnect needed: the restaurant must grant access again',
  pos_rejected_order: 'the POS does not take the order',
  circuit_open: 'the POS answers at none of many locations: a few orders at a time try it',
  unexpected_error: 'something failed in an unforeseen way',

  process_died: 'the process ended during the call',
  pos_cannot_be_asked: 'the POS may have the order and cannot be asked',
  order_absent_yet: 'the POS does not have the order yet',
  repeat_refused: 'the POS refuses the repeat',
  repeat_unrecognised: 'the POS no longer recognises a repeat, and may have the order',
  deadline_passed_in_doubt: 'the deadline has passed, and the POS may have the order',
  order_ended_in_doubt: 'the order has ended, and the POS may have it',
  location_left_pos: ({ integration }) => `it may be at the POS of "${integration}", which the location has left`,
  pos_account_changed: 'it may be at the POS that the location had before its settings were changed',
  restored: 'after a restore: the POS may have it',
  no_ticket_seen: 'an operator says that the POS does not have the order',
  cancelled_in_doubt: 'the order is cancelled, and the POS may have it',

  pos_cannot_cancel: 'this POS cannot be asked to cancel an order: the restaurant must be told',
  cancel_refused: 'the POS refuses to cancel the order',
  cancel_in_doubt: 'the POS was asked to cancel the order, and its answer was lost',
  cancel_unconfirmed: 'the POS was asked to cancel the order, and has not said that it did',
  cancel_ticket_missing: 'the POS has no such order, though it took it',
  cancel_deadline_passed: 'the POS could not be asked in time to cancel the order',
  order_erased: 'the data of the order is erased, and the POS cannot be asked without',

  already_failed: 'it has failed, which is final: the platform places a new order',
  already_sent: 'its ticket is at the POS already',
  needs_resolve: 'the POS may have it, so it is not repeated blindly: look there and resolve it',
  call_under_way: 'a call about it is under way: look again when it is over, mostly within half a minute',
  not_in_doubt: ({ state }) => `it is not in doubt but ${state}`,
  never_sent: 'it was never sent to a POS',
  pos_id_taken: ({ providerOrderId, serviceOrderId }) =>
    `the POS id "${providerOrderId}" is that of order "${serviceOrderId}"`,
  never_read: 'it was never read from the platform',
  already_over: 'it is over',
  not_to_be_cancelled: 'nobody has asked to cancel it',
};

export function describeCause(cause: PlacementCause | RefusalCause): string {
  const sentence = SENTENCES[cause.code] as string | ((cause: PlacementCause | RefusalCause) => string);
  return typeof sentence === 'string' ? sentence : sentence(cause);
}

/** A placement's problem, for people, and its cause, for programs. */
export type Why = { problem: string; cause: PlacementCause };

export function why(cause: PlacementCause): Why {
  return { problem: describeCause(cause), cause };
}

/** A refused command, with a sentence and its cause. */
export type Refused = { refused: string; cause: RefusalCause };

export function refused(cause: RefusalCause): Refused {
  return { refused: describeCause(cause), cause };
}
