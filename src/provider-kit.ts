/**
 * The `expediter-kit` package: parts for a provider in its own package, loaded with `PROVIDER_MODULES`. See
 * docs/writing-a-provider.md.
 */
export type { Busy } from './core/domain/webhook.ts';
export { discountsOf, minorDigits, toDecimal } from './core/domain/money.ts';
export * from './core/domain/errors.ts';
export * from './core/domain/flatten-modifiers.ts';
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
  CancelAnswer,
  Connection,
  Credentials,
  Grant,
  PosContext,
  Provider,
  Webhook,
} from './core/domain/provider.ts';
export type { WebhookAuth } from './core/domain/webhook-auth.ts';
export * from './providers/call-pos.ts';
export * from './providers/oauth.ts';
export * from './providers/order-texts.ts';
export * from './providers/read-json.ts';
export * from './providers/shared-settings.ts';
export * from './providers/verify-hmac.ts';
