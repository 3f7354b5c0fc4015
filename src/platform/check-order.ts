import { classifyError } from '../core/domain/classify-error.ts';
import type { LeftOut } from '../core/domain/left-out.ts';
import type { CanonicalOrder } from '../core/domain/order.ts';
import type { OrderModule } from '../core/domain/order-module.ts';
import type { PlacementCause } from '../core/domain/placement-cause.ts';
import type { Registry } from '../core/domain/provider.ts';
import { readCanonicalOrder } from '../core/domain/read-canonical-order.ts';
import { askMapper } from '../core/placements/ask-mapper.ts';
import { orderDataFetcher, variablesOf } from '../core/placements/fetch-order-data.ts';
import type { CodedError } from '../core/placements/read-errors.ts';
import { compareSums, type Remark } from './compare-sums.ts';
import { describeShape, type ShapeLine } from './describe-shape.ts';
import { listRefusals, type Refusal } from './list-refusals.ts';

/** What the service would make of an order. */
export type CheckedOrder =
  | {
      state: 'ok';
      order: CanonicalOrder;
      leftOut: readonly LeftOut[];
      remarks: Remark[];
      refusals: Refusal[];
      shape: ShapeLine[];
    }
  /** The platform has no such order. */
  | { state: 'missing' }
  /** `thrown` is what a mapper threw, with its message, which may quote the order, as may those of `errors`. */
  | {
      state: 'failed';
      problem: string;
      cause: PlacementCause;
      errors?: readonly CodedError[];
      shape?: ShapeLine[];
      thrown?: unknown;
    };

/**
 * Fetches one order and reads it, as the service would, and stores nothing.
 * @param about.warn told if the module's `errorCode` throws
 */
export async function checkOrder(
  about: {
    url: string;
    token: string | undefined;
    module: OrderModule;
    registry: Registry;
    warn: (problem: string) => void;
  },
  serviceOrderId: string,
): Promise<CheckedOrder> {
  let errors: readonly CodedError[] = [];
  let shape: ShapeLine[] | undefined;
  let thrown: unknown;
  const noting = <Given, Made>(ask: (given: Given) => Made): ((given: Given) => Made) => {
    return (given) => {
      try {
        return ask(given);
      } catch (error) {
        thrown = error;
        throw error;
      }
    };
  };
  const { module } = about;
  const variables = noting((orderId: string) => variablesOf(module, orderId));
  const toCanonicalOrder = noting((data: unknown) => module.toCanonicalOrder(data));
  try {
    const fetchData = orderDataFetcher({
      ...about,
      module: { ...module, variables },
      onErrors: (answered) => (errors = answered),
    });
    const data = await fetchData(serviceOrderId);
    if (data === undefined) return { state: 'missing' };
    shape = describeShape(data);
    const value = askMapper(() => toCanonicalOrder(data));
    if (value === null) return { state: 'missing' };
    const read = readCanonicalOrder(value, { serviceOrderId });
    const { order } = read;
    return { state: 'ok', ...read, remarks: compareSums(order), refusals: listRefusals(order, about.registry), shape };
  } catch (error) {
    const { problem, cause } = classifyError(error);
    const details = { ...(errors.length > 0 && { errors }), ...(shape && { shape }) };
    return { state: 'failed', problem, cause, ...details, ...(cause.code === 'order_mapper_threw' && { thrown }) };
  }
}
