import { MEMBER_STATE_TONES, PLACEMENT_TONES } from '../parts/tones.ts';

export const PLACEMENT_STATES = Object.keys(PLACEMENT_TONES);
export const MEMBER_STATES = Object.keys(MEMBER_STATE_TONES);

/** The filter of the list of orders, as in the address and the API. */
export type OrdersFilter = {
  location?: string;
  group?: string;
  integration?: string;
  state?: string;
  memberState?: string;
  open?: string;
  needs?: string;
  since?: string;
  until?: string;
};

const ALLOWED: Record<keyof OrdersFilter, (value: string) => boolean> = {
  location: isSet,
  group: isSet,
  integration: isSet,
  state: (value) => PLACEMENT_STATES.includes(value),
  memberState: (value) => MEMBER_STATES.includes(value),
  open: (value) => value === 'true' || value === 'false',
  needs: (value) => value === 'operator' || value === 'late',
  since: isTime,
  until: isTime,
};

export const FILTERS = Object.keys(ALLOWED) as (keyof OrdersFilter)[];

/** Reads the filter from an address, without invalid values. */
export function ordersFilter(query: Record<string, string | undefined>): OrdersFilter {
  return Object.fromEntries(
    Object.entries(ALLOWED).flatMap(([name, isAllowed]) => {
      const value = query[name]?.trim() ?? '';
      return isAllowed(value) ? [[name, value]] : [];
    }),
  );
}

function isSet(value: string): boolean {
  return value !== '';
}

/** A time with seconds and an offset, as the service requires. */
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

function isTime(value: string): boolean {
  return INSTANT.test(value) && !Number.isNaN(Date.parse(value));
}
