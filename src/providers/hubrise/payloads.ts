import { z } from 'zod';
import { Id } from '../../core/domain/order.ts';
import { absentable } from '../absentable.ts';
import { Secret, baseUrl } from '../shared-settings.ts';

/** A ref code alone, or with the list that an option belongs to. */
const PosItem = z.union([Id, z.strictObject({ ref: Id, optionListName: z.string().min(1).max(255).optional() })]);

/** One location's: a HubRise connection is of one client and one location. */
export const Settings = z.strictObject({
  /** Of the connection; it does not expire. */
  accessToken: Secret,
  /** Of the OAuth client that the connection belongs to; HubRise signs webhooks with it. */
  clientSecret: Secret,
  /** Many a POS says `completed` when it closes the check: does that mean that the member has the food? */
  closedMeansCompleted: z.boolean().default(true),
  baseUrl: baseUrl('https://api.hubrise.com/v1'),
  /** Ref codes of skus, options, charges and the payment, by our ids; one that is not in it is the ref code already. */
  itemMap: z.record(Id, PosItem).default({}),
});
export type Settings = z.infer<typeof Settings>;

/** Of an order, what we need to know it again. */
export const OrderTaken = z.object({ id: Id });
export const Orders = z.array(z.object({ id: Id, private_ref: z.string().nullish() }));

/** https://www.hubrise.com/developers/api/general-concepts#errors */
export const Refusal = z.object({
  error_type: z.string().optional(),
  errors: z.array(z.object({ field: z.string() })).optional(),
});

export const Location = z.object({
  id: Id,
  name: z.string(),
  account: z.object({ name: z.string(), currency: z.string() }),
});

/** Without one, `url` is null. */
export const Callback = z.object({ url: z.string().nullish() });

export const AnyEvent = z.object({ resource_type: z.string(), event_type: z.string() });

const State = z.object({ status: z.string().nullish() });
const OrderState = State.extend({ delivery: State.nullish() });

/** The ids of the resource and its parents stand beside its states, in which they stand as well. */
export const OrderEvent = z.object({
  created_at: z.unknown().optional(),
  order_id: absentable(Id),
  new_state: OrderState.extend({
    id: absentable(Id),
    /**
     * Ours alone: HubRise shows each client its own. `ref` is any client's, and often a short number that begins anew
     * each day: it tells no order of ours.
     */
    private_ref: absentable(Id),
  }),
  previous_state: OrderState.nullish(),
});
export type OrderEvent = z.infer<typeof OrderEvent>;

/** `ref` of a delivery is the carrier's tracking number and none of ours. */
export const DeliveryEvent = z.object({
  created_at: z.unknown().optional(),
  order_id: absentable(Id),
  new_state: State.extend({ order_id: absentable(Id) }),
  previous_state: State.nullish(),
});
