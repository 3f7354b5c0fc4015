/**
 * The `expediter-platform` package: functions and types for an `ORDER_MODULE`, which turns a platform's orders into
 * canonical orders. See docs/connect-your-platform.md.
 */
export type { FulfillmentType } from './core/domain/lifecycle.ts';
export { minorDigits, toDecimal } from './core/domain/money.ts';
export type { CanonicalOrder, Modifier } from './core/domain/order.ts';
export {
  OrderError,
  type Cancelled,
  type ErrorCode,
  type FetchAnswer,
  type FetchContext,
  type FetchModule,
  type OrderInput,
  type OrderModule,
  type PlatformError,
  type QueryModule,
  type Skipped,
} from './core/domain/order-module.ts';
export type { LeftOut } from './core/domain/left-out.ts';
export { joinName, joinStreet, splitName, splitStreet } from './core/domain/member-text.ts';
export { readCanonicalOrder, type ReadOrder } from './core/domain/read-canonical-order.ts';
export {
  fromHundredths,
  mapEnum,
  mapLocation,
  MappingError,
  minorUnits,
  phoneInCountry,
  roundTogether,
  skip,
  timeInZone,
  timeSinceEpoch,
  toMinorUnits,
  type MappingCode,
} from './platform/mapping.ts';
