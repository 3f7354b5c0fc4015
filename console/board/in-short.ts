import type { BoardOrder, PlacementCause } from '../wire.ts';

/** A few words for each cause, short enough for a ticket. The order's page has the full sentence. */
const IN_SHORT: Record<PlacementCause['code'], string> = {
  platform_unreachable: 'platform not reachable',
  platform_failing: 'platform failing',
  platform_refuses_us: 'platform refuses us',
  platform_refuses_order: 'platform refuses order',
  platform_redirects: 'platform redirects us',
  platform_answer_too_large: 'platform answer too large',
  query_without_order: 'query has no order',

  order_missing_yet: 'not at the platform yet',
  order_missing: 'not at the platform',
  order_id_invalid: 'id is invalid',
  order_skipped: 'skipped by the mapper',
  order_unreadable: 'order not readable',
  order_mapper_threw: 'order mapper failed',
  refused_by_postgres: 'order cannot be stored',
  order_ended: 'order has ended',
  deadline_passed: 'deadline passed',

  location_paused: 'location paused',
  location_paused_by_pos: 'paused by its POS',
  no_location: 'location not configured',
  settings_sealed: 'settings cannot be decrypted',
  settings_of_another: 'settings of another location',
  unknown_integration: 'integration missing',
  wrong_settings: 'wrong settings',
  no_public_url: 'PUBLIC_URL missing',

  pos_unreachable: 'POS not reachable',
  pos_silent: 'no answer',
  pos_busy: 'POS busy',
  pos_failing: 'POS failing',
  pos_refused_us: 'POS refuses us',
  pos_set_up_wrong: 'POS misconfigured',
  pos_host_refused: 'host not allowed',
  reconnect_needed: 'reconnect needed',
  pos_rejected_order: 'POS refused it',
  circuit_open: 'POS down everywhere',
  unexpected_error: 'unexpected error',

  process_died: 'check the POS',
  pos_cannot_be_asked: 'check the POS',
  order_absent_yet: 'POS is checked again',
  repeat_refused: 'check the POS',
  repeat_unrecognised: 'check the POS',
  deadline_passed_in_doubt: 'check the POS',
  order_ended_in_doubt: 'check the POS',
  location_left_pos: 'check the former POS',
  pos_account_changed: 'check the former POS',
  restored: 'check the POS',
  no_ticket_seen: 'sent again',
  cancelled_in_doubt: 'check the POS',

  pos_cannot_cancel: 'cancel by phone',
  cancel_refused: 'POS refused to cancel',
  cancel_in_doubt: 'cancel by phone',
  cancel_unconfirmed: 'cancel by phone',
  cancel_ticket_missing: 'cancel by phone',
  cancel_deadline_passed: 'cancel by phone',
  order_erased: 'cancel by phone',
};

/** What is wrong with an order, in a few words. Undefined without a cause, or for one that a newer service added. */
export function inShort(cause: BoardOrder['cause']): string | undefined {
  return cause !== null && Object.hasOwn(IN_SHORT, cause.code)
    ? IN_SHORT[cause.code as PlacementCause['code']]
    : undefined;
}
