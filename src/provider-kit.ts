/// <reference types="node" preserve="true" />
/**
 * The `expediter-kit` package: functions and types for a provider that is a package of its own and is loaded with
 * `PROVIDER_MODULES`. See docs/writing-a-provider.md.
 */
export type { KitchenReport } from './core/domain/webhook.ts';
export { discountsOf, feesOf, minorDigits, taxesOnTop, toDecimal } from './core/domain/money.ts';
export { GiveUp, NeedsOperator, NotAuthentic, Poison, TryAgain, tryAgainWith } from './core/domain/errors.ts';
export { flattenModifiers } from './core/domain/flatten-modifiers.ts';
export { STATUSES, type FulfillmentType, type Status } from './core/domain/lifecycle.ts';
export {
  CanonicalOrder,
  describeIssues,
  Id,
  KitchenOrder,
  type Modifier,
  OrderRef,
  StatusEvent,
} from './core/domain/order.ts';
export { joinName, splitName } from './core/domain/member-text.ts';
export { REASON_CODES, ReasonCode } from './core/domain/reason-code.ts';
export type {
  Authorisation,
  CancelAnswer,
  Connection,
  Credentials,
  Grant,
  PosContext,
  Provider,
  Webhook,
} from './core/domain/provider.ts';
export type { WebhookAuth } from './core/domain/webhook-auth.ts';
export {
  callPos,
  limitRate,
  quoteRefusal,
  routeOf,
  type Allowance,
  type PosAnswer,
  type PosRequest,
} from './providers/call-pos.ts';
export { kitchenReport, minutesIfAny, pauseMinutes } from './providers/kitchen-report.ts';
export { callWithToken, connectByCode, oauthGrant, oauthRevoke } from './providers/oauth.ts';
export { ageCheck, cutText, orderNote, reasonInWords, takeOff } from './providers/order-texts.ts';
export {
  absentable,
  idIfAny,
  ifAny,
  requestedId,
  parseJson,
  readShape,
  readState,
  textIfAny,
  timeIfAny,
} from './providers/read-json.ts';
export { neverTaken, NOT_TAKEN, refuseNameless, tooLate } from './providers/refusals.ts';
export {
  BaseUrl,
  baseUrl,
  DeliveredBy,
  entryOf,
  HttpUrl,
  ItemMap,
  Secret,
  SHOWN,
} from './providers/shared-settings.ts';
export { verifyHmac } from './core/domain/verify-hmac.ts';
