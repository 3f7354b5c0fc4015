/**
 * Causes why a placement waits, is held, is in doubt or failed, why a cancellation is not complete, and why a command
 * about either is refused. Closed lists: a code never changes its details or its meaning. Details must not hold a
 * secret or a member's data.
 */
import { z } from 'zod';
import { CauseText } from './cause-text.ts';
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
  /** `fields` are paths of our query, such as `order.lines.*.customerGroup`. Another word than of our query is `?`. */
  z.object({ code: z.literal('platform_refuses_field'), fields: z.array(CauseText), httpStatus: HttpStatus }),
  /** The query does not fit the platform's schema. `fields` are words of the query, such as `customerGroup (line 4)`. */
  z.object({ code: z.literal('platform_refuses_query'), fields: z.array(CauseText), httpStatus: HttpStatus }),
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
  /** The platform has cancelled it, and nothing else of it could be read. */
  z.object({ code: z.literal('order_cancelled') }),
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
  z.object({ code: z.literal('change_settled') }),
]);
export type RefusalCause = z.infer<typeof RefusalCause>;

/** A placement's problem: a sentence for people, a cause for programs. */
export type Problem = { problem: string; cause: PlacementCause };

export type Refused = { refused: string; cause: RefusalCause };
