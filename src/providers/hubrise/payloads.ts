import { z } from 'zod';
import { Id, StatusEvent } from '../../core/domain/order.ts';
import { absentable, idIfAny, ifAny, requestedId, timeIfAny } from '../read-json.ts';
import { Secret, baseUrl, SHOWN } from '../shared-settings.ts';
import { minutesIfAny, pauseMinutes } from '../kitchen-report.ts';

/** A ref code, alone or with the name of the list that an option belongs to. */
const PosItem = z.union([Id, z.strictObject({ ref: Id, optionListName: z.string().min(1).max(255).optional() })]);

const Fields = z.strictObject({
  accessToken: Secret.optional().describe("The connection's token. It does not expire. Connect fills it in."),
  clientId: Secret.optional().meta({
    ...SHOWN,
    description: "The id of the connection's OAuth client. It is in the URL of the page where the restaurant agrees.",
  }),
  clientSecret: Secret.describe("The secret of the connection's OAuth client. HubRise signs webhooks with it."),
  closedMeansCompleted: z
    .boolean()
    .default(true)
    .describe(
      'True if completed means that the member has the food. Many POS systems send it when they close the check.',
    ),
  authorizationCode: Secret.optional().describe('An authorisation code, which Connect exchanges.'),
  customers: z
    .enum(['guest', 'attach'])
    .default('guest')
    .describe("attach: writes every order's member into the restaurant's customer list, which some tills require."),
  customerListId: Id.optional().meta({
    ...SHOWN,
    description: 'The list that the connection may write to. Connect fills it in.',
  }),
  baseUrl: baseUrl('https://api.hubrise.com/v1'),
  oauthUrl: baseUrl('https://manager.hubrise.com/oauth2/v1').describe('The URL for authorisations and code exchanges.'),
  itemMap: z
    .record(Id, PosItem)
    .default({})
    .meta({
      ...SHOWN,
      description:
        'Maps our ids to ref codes of skus, options, charges, discounts and payments. An unmapped id is the ref code.',
    }),
  pauseMinutes: pauseMinutes(),
});

export const Application = Fields.pick({
  baseUrl: true,
  oauthUrl: true,
  clientId: true,
  clientSecret: true,
}).required({ clientId: true });

/** The settings of one location. They contain a token, or the OAuth client that can obtain a token. */
export const Settings = Fields.superRefine((settings, { addIssue }) => {
  const { accessToken, clientId, authorizationCode, customers, customerListId } = settings;
  const isMissing = (field: string): void => addIssue({ code: 'custom', path: [field], message: 'is missing' });
  if (accessToken === undefined && clientId === undefined) isMissing('accessToken');
  if (authorizationCode !== undefined && clientId === undefined) isMissing('clientId');
  if (customers === 'attach' && customerListId === undefined && clientId === undefined) isMissing('customerListId');
}).meta({ title: 'HubRise', description: 'Every POS that is connected to HubRise.' });
export type Settings = z.infer<typeof Settings>;

export const OrderTaken = z.object({ id: Id });
export const Orders = z.array(z.object({ id: Id, private_ref: z.string().nullish() }));

/** The answer to a refused request: https://www.hubrise.com/developers/api/general-concepts#errors */
export const Refusal = z.object({
  error_type: z.string().optional(),
  errors: z.array(z.object({ field: z.string() })).optional(),
});

export const Location = z.object({
  id: Id,
  name: z.string(),
  account: z.object({ name: z.string(), currency: z.string() }),
});

export const TokenGranted = z.object({
  access_token: z.string().min(1),
  customer_list_id: absentable(Id),
  customer_list_name: absentable(z.string()),
  location_name: absentable(z.string()),
  account_name: absentable(z.string()),
});

export const Customer = z.object({
  id: Id,
  private_ref: z.string().nullish(),
  anonymised: z.boolean().nullish(),
});
export const Customers = z.array(Customer);

/** The connection's callback. Without one, `url` is null. */
export const Callback = z.object({ url: z.string().nullish() });

export const AnyEvent = z.object({ resource_type: z.string(), event_type: z.string() });

/** Why a till (EPOS) rejected an order, in words for its technicians: https://www.hubrise.com/developers/conventions */
const Words = z.string().optional().catch(undefined);
const Rejection = z.object({ cause: Words, info: z.object({ reason: Words }).optional().catch(undefined) });
const CustomFields = z.object({ epos: z.object({ rejection: Rejection }) });

export const State = z.object({ status: ifAny(z.string()) });
export const DeliveryState = State.extend({
  estimated_pickup_at: timeIfAny,
  estimated_dropoff_at: timeIfAny,
  tracking_url: StatusEvent.shape.trackingUrl,
});
export const OrderState = State.extend({
  delivery: ifAny(DeliveryState),
  service_type: ifAny(z.string()),
  /** HubRise calls it the "confirmed time for the customer to receive the order". */
  confirmed_time: timeIfAny,
  custom_fields: CustomFields.optional().catch(undefined),
});

/** Schema of an answer about an order. Its id is the requested id. Its private ref is our order id, or missing. */
export function requestedOrder({ id, privateRef }: { id: string; privateRef: string }) {
  return OrderState.extend({ id: requestedId(id), private_ref: absentable(requestedId(privateRef)) });
}

/** An order event. It names the order by `order_id`, or by its new state's `id` or `private_ref`. One is enough. */
export const OrderEvent = z.object({
  created_at: timeIfAny,
  order_id: idIfAny,
  new_state: OrderState.extend({
    id: idIfAny,
    /**
     * Our order id. HubRise shows each client only its own private ref. `ref` does not identify our orders: any client
     * may set it, and it is often a short number that starts again each day.
     */
    private_ref: idIfAny,
  }),
  previous_state: ifAny(OrderState),
});
export type OrderEvent = z.infer<typeof OrderEvent>;

export const LocationEvent = z.object({
  resource_type: z.literal('location'),
  new_state: z.object({
    order_acceptance: z.object({
      mode: z.enum(['online', 'busy', 'paused']),
      /** When the mode becomes `online` again. If null, somebody must change it. */
      resume_at: timeIfAny,
      extra_preparation_time: minutesIfAny,
    }),
  }),
});

/** A delivery event. Its `ref` is the carrier's tracking number. */
export const DeliveryEvent = z.object({
  created_at: timeIfAny,
  order_id: idIfAny,
  new_state: DeliveryState.extend({ order_id: idIfAny }),
  previous_state: ifAny(DeliveryState),
});
