import { isObject } from '../core/domain/json-text.ts';
import { classifyError, describeError } from '../core/domain/classify-error.ts';
import type { LeftOut } from '../core/domain/left-out.ts';
import type { OrderModule } from '../core/domain/order-module.ts';
import type { CanonicalOrder } from '../core/domain/order.ts';
import type { PlacementCause } from '../core/domain/placement-cause.ts';
import type { Registry } from '../core/domain/provider.ts';
import { readCanonicalOrder, readOrderOrCancel, type ReadOrder } from '../core/domain/read-canonical-order.ts';
import { loadPhones } from '../core/domain/to-e164.ts';
import type { CodedError } from '../core/placements/ask-platform.ts';
import type { Credentials } from '../core/placements/platform-headers.ts';
import { orderFetcher, variablesOf, type RequestOfModule } from '../core/placements/fetch-order.ts';
import { doubtsOf, type Remark } from './doubt-order.ts';

const PATTERN_MAX = 32;
const LINES_MAX = 500;

/** Paths of member data. The country and the type of a fulfillment are no member data. */
const PERSONAL = /^(member\..*|fulfillment\.destination\.(?!country$).*|notes|items\.\d+\.notes)$/;

/** An integration that cannot place the order, whatever a location's settings are. */
type Refusal = { integration: string; problem: string };

/** One field of an answer: its path and type, without its value. */
export type ShapeLine = { path: string; kind: string };

export type CheckedOrder =
  | {
      state: 'ok';
      order: CanonicalOrder;
      leftOut: readonly (LeftOut & { says?: string })[];
      remarks: Remark[];
      refusals: Refusal[];
      shape: ShapeLine[];
    }
  | { state: 'missing' }
  /** The platform has cancelled it, and nothing else of it can be read. */
  | { state: 'cancelled'; shape: ShapeLine[] }
  /** The mapper called `skip`. */
  | { state: 'skipped'; reason: string | undefined; shape: ShapeLine[] }
  /** `thrown` is an error of the mapper. Its message and the messages of `errors` may quote the order. */
  | {
      state: 'failed';
      problem: string;
      cause: PlacementCause;
      errors?: readonly CodedError[];
      shape?: ShapeLine[];
      thrown?: unknown;
    };

/**
 * Fetches one order and reads it like the service. Stores nothing.
 * @param about.warn called if the order module's `errorCode` throws
 * @param about.onRequest called before each request of `fetchOrder`
 */
export async function checkOrder(
  about: {
    url: string;
    token: string | undefined;
    readToken?: Credentials['readToken'];
    module: OrderModule;
    registry: Registry;
    warn: (problem: string) => void;
    onRequest?: (request: RequestOfModule) => void;
  },
  serviceOrderId: string,
): Promise<CheckedOrder> {
  let errors: readonly CodedError[] = [];
  let shape: ShapeLine[] | undefined;
  let thrown: unknown;
  const noting = <Given extends unknown[], Made>(ask: (...given: Given) => Made): ((...given: Given) => Made) => {
    const note = (error: unknown): never => {
      thrown = error;
      throw error;
    };
    return (...given) => {
      try {
        const made = ask(...given);
        return made instanceof Promise ? (made.catch(note) as Made) : made;
      } catch (error) {
        return note(error);
      }
    };
  };
  const { module } = about;
  const toCanonicalOrder = noting((data: unknown) => {
    shape = describeShape(data);
    return module.toCanonicalOrder(data);
  });
  const ours = { toCanonicalOrder, ...(module.headers && { headers: noting(module.headers) }) };
  const noted: OrderModule =
    module.fetchOrder === undefined
      ? { ...module, variables: noting((orderId: string) => variablesOf(module, orderId)), ...ours }
      : { ...module, fetchOrder: noting(module.fetchOrder), ...ours };
  try {
    const fetchOrder = orderFetcher({ ...about, module: noted, onErrors: (answered) => (errors = answered) });
    const value = await fetchOrder(serviceOrderId);
    if (value === null) return { state: 'missing' };
    const read = readOrderOrCancel(value, { serviceOrderId });
    if (read.order === undefined) return { state: 'cancelled', shape: shape ?? [] };
    const { order, leftOut } = read;
    const completed = leftOut.some(isPhone) ? readWithCountry(value, serviceOrderId) : undefined;
    const refusals = listRefusals(completed?.order ?? order, about.registry);
    const explained = leftOut.map((each) => {
      if (each.path === 'fulfillment.destination.country') return { ...each, says: NO_COUNTRY };
      return completed && isPhone(each) ? { ...each, says: NATIONAL } : each;
    });
    // A platform may clear the amounts of a cancelled order.
    const remarks = order.cancelledAt === undefined ? doubtsOf(order, new Date()) : [];
    return { state: 'ok', order, leftOut: explained, remarks, refusals, shape: shape ?? [] };
  } catch (error) {
    const { problem, cause } = classifyError(error);
    if (cause.code === 'order_skipped') return { state: 'skipped', reason: cause.reason, shape: shape ?? [] };
    const details = { ...(errors.length > 0 && { errors }), ...(shape && { shape }) };
    return { state: 'failed', problem, cause, ...details, ...(cause.code === 'order_mapper_threw' && { thrown }) };
  }
}

const NO_COUNTRY = 'it is not an ISO 3166-1 code such as DE. Map it with mapEnum';
export const NATIONAL =
  "a national number, and no country is known. Use phoneInCountry(phone, 'DE') in the mapper, or: expediter location change <id> --country DE";
const isPhone = ({ code }: LeftOut): boolean => code === 'phone_unusable';

/** Reads an order as at a location whose country completes the telephone number, if there is such a country. */
function readWithCountry(value: unknown, serviceOrderId: string): ReadOrder | undefined {
  for (const country of loadPhones().getCountries()) {
    const read = readCanonicalOrder(value, { serviceOrderId, country });
    if (!read.leftOut.some(isPhone)) return read;
  }
  return undefined;
}

/** Lists the providers that refuse an order without calling their POS. */
function listRefusals(order: CanonicalOrder, registry: Registry): Refusal[] {
  return [...registry].flatMap(([integration, provider]) => {
    try {
      provider.checkOrder?.(order);
      return [];
    } catch (error) {
      return [{ integration, problem: describeError(error) }];
    }
  });
}

/** Describes all fields of an answer. Values are left out: they may be member data. A list's entries are merged. */
function describeShape(data: unknown): ShapeLine[] {
  const kinds = new Map<string, Set<string>>();
  const look = (value: unknown, path: string): void => {
    if (path !== '') kinds.set(path, (kinds.get(path) ?? new Set()).add(kindOf(value)));
    if (typeof value !== 'object' || value === null || kinds.size > LINES_MAX) return;
    for (const [key, each] of Object.entries(value)) {
      // Keys inside a custom scalar of the platform may be any text, so they may contain member data.
      const name = Array.isArray(value) ? '*' : /^\w{1,64}$/.test(key) ? key : '?';
      look(each, path === '' ? name : `${path}.${name}`);
    }
  };
  look(data, '');
  return [...kinds].map(([path, each]) => ({ path, kind: [...each].join(' or ') }));
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return `list of ${value.length}`;
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value === 'string' ? kindOfText(value) : typeof value;
}

/** Describes the format of a text, such as an amount, a time or an enum value, without quoting it. */
function kindOfText(text: string): string {
  if (text === '') return 'empty text';
  if (text.length <= PATTERN_MAX && /\d/.test(text) && /^[-+\d.,:/TZ ]+$/.test(text)) {
    return `text like ${text.replaceAll(/\d/g, '0')}`;
  }
  return /^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$/.test(text) ? 'text in capitals' : 'text';
}

/** Copies an order, and replaces member data by its length or type. */
export const maskOrder = (order: CanonicalOrder): unknown => mask(order, '');

function mask(value: unknown, path: string): unknown {
  if (isObject(value)) {
    const masked = Object.entries(value).map(([key, each]) => [key, mask(each, path === '' ? key : `${path}.${key}`)]);
    return Array.isArray(value) ? masked.map(([, each]) => each) : Object.fromEntries(masked);
  }
  if (!PERSONAL.test(path) || value === undefined) return value;
  return typeof value === 'string' ? `(${value.length} characters)` : `(a ${typeof value})`;
}
