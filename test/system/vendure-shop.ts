/** A running Vendure by its own two GraphQL APIs: what its dashboard and its storefront do. */
import { randomUUID } from 'node:crypto';

type Data = Record<string, unknown>;
export type Ask = <Answer = Data>(query: string, variables?: Data) => Promise<Answer>;

/** A restaurant is a channel. Amounts are hundredths of its currency, as Vendure keeps those of each currency. */
export type Channel = {
  code: string;
  currency: string;
  country: string;
  pricesIncludeTax: boolean;
  /** Percent: of the category `standard` and of `reduced`. */
  taxes: [number, number];
  /** Hundredths. The reduced tax applies to every second one. */
  prices: number[];
  /** Hundredths. */
  delivery: number;
  /** Ids of the variants, in the order of `prices`. */
  variants: string[];
  /** Ids of the shipping methods. */
  ways: Record<Way, string>;
};
type Way = 'delivery' | 'pickup';

export const CHANNELS = [
  { code: 'berlin', currency: 'EUR', country: 'DE', pricesIncludeTax: true, taxes: [19, 7] },
  { code: 'austin', currency: 'USD', country: 'US', pricesIncludeTax: false, taxes: [8.25, 0] },
  { code: 'tokyo', currency: 'JPY', country: 'JP', pricesIncludeTax: true, taxes: [10, 8] },
  { code: 'manama', currency: 'BHD', country: 'BH', pricesIncludeTax: false, taxes: [10, 0] },
] as const;
const PRICES = {
  EUR: { prices: [1290, 350, 899, 449], delivery: 390 },
  USD: { prices: [1399, 325, 895, 475], delivery: 499 },
  JPY: { prices: [99_000, 35_000, 128_000, 45_000], delivery: 50_000 },
  BHD: { prices: [330, 95, 275, 105], delivery: 75 },
};
const MENU = ['Burger', 'Fries', 'Curry', 'Lemonade'];
/** The coupons of each channel, in percent of the items. FREE takes the delivery too. */
export const COUPONS = { TEN: 10, THIRD: 33, FREE: 100 } as const;

/** @returns a function that asks one of the APIs, and keeps the session that Vendure answers with */
export function vendureClient(url: string, channel?: string, token?: string): Ask {
  let session = token;
  return async <Answer>(query: string, variables: Data = {}) => {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(channel !== undefined && { 'vendure-token': channel }),
        ...(session !== undefined && { authorization: `Bearer ${session}` }),
      },
      body: JSON.stringify({ query, variables }),
    });
    session = response.headers.get('vendure-auth-token') ?? session;
    const { data, errors } = (await response.json()) as { data: Data; errors?: unknown };
    if (errors !== undefined) throw new Error(JSON.stringify(errors).slice(0, 2_000));
    // A refusal of Vendure is an answer with a code.
    for (const each of Object.values(data)) {
      if (typeof each === 'object' && each !== null && 'errorCode' in each) throw new Error(JSON.stringify(each));
    }
    return data as Answer;
  };
}

export async function logIn(url: string, channel?: string): Promise<Ask> {
  const admin = vendureClient(`${url}/admin-api`, channel);
  await admin(`mutation { login(username: "superadmin", password: "superadmin") { __typename } }`);
  return admin;
}

const texts = (name: string, more: Data = {}): Data => ({ translations: [{ languageCode: 'en', name, ...more }] });
const op = (code: string, args: Data = {}): Data => ({
  code,
  arguments: Object.entries(args).map(([name, value]) => ({ name, value: String(value) })),
});

/** Sets an empty shop up: its channels with their countries, taxes, products, ways of delivery, coupons. */
export async function setUpShop(url: string): Promise<Channel[]> {
  const admin = await logIn(url);
  const create = async (type: string, input: Data, ask: Ask = admin): Promise<string> => {
    const made = await ask<{ made: { id: string } }>(
      `mutation Make($input: Create${type}Input!) { made: create${type}(input: $input) { ... on ${type} { id } ... on ErrorResult { errorCode message } } }`.replace(
        / \.\.\. on ErrorResult \{ errorCode message \}/,
        type === 'Channel' || type === 'Promotion' ? '$&' : '',
      ),
      { input },
    );
    return made.made.id;
  };
  const categories = [
    await create('TaxCategory', { name: 'Standard', isDefault: true }),
    await create('TaxCategory', { name: 'Reduced' }),
  ];
  const { activeChannel } = await admin<{ activeChannel: { id: string } }>('{ activeChannel { id } }');
  const channels: Channel[] = [];
  for (const about of CHANNELS) {
    const { code, currency, country, pricesIncludeTax, taxes } = about;
    const { prices, delivery } = PRICES[currency];
    const member = await create('Country', { code: country, enabled: true, ...texts(country) });
    const zone = await create('Zone', { name: country, memberIds: [member] });
    // Without zones, the default channel cannot show an order.
    await admin('mutation Set($input: UpdateChannelInput!) { updateChannel(input: $input) { __typename } }', {
      input: { id: activeChannel.id, defaultTaxZoneId: zone, defaultShippingZoneId: zone },
    });
    for (const [nth, value] of taxes.entries()) {
      const input = { name: `Tax ${value} %`, enabled: true, value, categoryId: categories[nth], zoneId: zone };
      await create('TaxRate', input);
    }
    await create('Channel', {
      code,
      token: code,
      defaultLanguageCode: 'en',
      availableLanguageCodes: ['en'],
      pricesIncludeTax,
      defaultCurrencyCode: currency,
      availableCurrencyCodes: [currency],
      defaultTaxZoneId: zone,
      defaultShippingZoneId: zone,
    });
    const here = await logIn(url, code);
    const priceless = op('default-shipping-eligibility-checker', { orderMinimum: 0 });
    const ways = { delivery: '', pickup: '' };
    for (const way of ['delivery', 'pickup'] as const) {
      const rate = way === 'delivery' ? delivery : 0;
      const calculator = op('default-shipping-calculator', { rate, includesTax: 'auto', taxRate: taxes[0] });
      const input = { code: way, fulfillmentHandler: 'manual-fulfillment', checker: priceless, calculator };
      ways[way] = await create('ShippingMethod', { ...input, ...texts(way, { description: '' }) }, here);
    }
    const handler = op('dummy-payment-handler', { automaticSettle: true });
    await create('PaymentMethod', { code: `card-${code}`, enabled: true, handler, ...texts('Card') }, here);
    for (const [couponCode, discount] of Object.entries(COUPONS)) {
      const actions = [op('order_percentage_discount', { discount })];
      if (discount === 100) actions.push(op('free_shipping'));
      await create('Promotion', { enabled: true, couponCode, conditions: [], actions, ...texts(couponCode) }, here);
    }
    const variants: string[] = [];
    for (const [nth, price] of prices.entries()) {
      const name = MENU[nth] ?? '';
      const product = { enabled: true, ...texts(name, { slug: name.toLowerCase(), description: '' }) };
      const productId = await create('Product', product, here);
      const { made } = await here<{ made: { id: string }[] }>(
        `mutation Make($input: [CreateProductVariantInput!]!) { made: createProductVariants(input: $input) { id } }`,
        {
          input: [
            {
              productId,
              enabled: true,
              sku: `${code}-${name.toLowerCase()}`,
              price,
              taxCategoryId: categories[nth % 2],
              stockOnHand: 100,
              trackInventory: 'FALSE',
              ...texts(name),
            },
          ],
        },
      );
      variants.push(made[0]?.id ?? '');
    }
    channels.push({
      code,
      currency,
      country,
      pricesIncludeTax,
      taxes: [...taxes],
      prices: [...prices],
      delivery,
      variants,
      ways,
    });
  }
  return channels;
}

export type Placed = { id: string; code: string; totalWithTax: number; currencyCode: string };

/** Vendure refuses with an answer that has a code. */
export const OUTCOME = '__typename ... on ErrorResult { errorCode message }';

/** Orders as a guest does, through Vendure's own checkout, and pays. */
export async function checkout(
  url: string,
  channel: Channel,
  about: {
    /** How many of each variant of the channel. */
    basket: number[];
    way?: Way;
    coupons?: readonly string[];
    phone?: string;
    wantedAt?: string;
    note?: string;
    lineNote?: string;
  },
): Promise<Placed> {
  const shop = vendureClient(`${url}/shop-api`, channel.code);
  const { basket, way = 'pickup', coupons = [], lineNote: note } = about;
  const inputs = basket.flatMap((quantity, nth) =>
    quantity === 0 ? [] : [{ productVariantId: channel.variants[nth], quantity, customFields: { note } }],
  );
  const { filled } = await shop<{ filled: { errorResults: unknown[] } }>(
    `mutation Fill($inputs: [AddItemInput!]!) {
      filled: addItemsToOrder(inputs: $inputs) { errorResults { ${OUTCOME} } }
    }`,
    { inputs },
  );
  if (filled.errorResults.length > 0) throw new Error(JSON.stringify(filled));
  const applied = coupons.map((code, nth) => `coupon${nth}: applyCouponCode(couponCode: "${code}") { ${OUTCOME} }`);
  const { paid } = await shop<{ paid: Placed }>(
    `mutation Order(
      $customer: CreateCustomerInput!, $address: CreateAddressInput!, $way: [ID!]!, $wishes: UpdateOrderInput!,
      $payment: PaymentInput!
    ) {
      setCustomerForOrder(input: $customer) { ${OUTCOME} }
      setOrderShippingAddress(input: $address) { ${OUTCOME} }
      setOrderShippingMethod(shippingMethodId: $way) { ${OUTCOME} }
      setOrderCustomFields(input: $wishes) { ${OUTCOME} }
      ${applied.join('\n')}
      transitionOrderToState(state: "ArrangingPayment") { ${OUTCOME} }
      paid: addPaymentToOrder(input: $payment) { ... on Order { id code totalWithTax currencyCode } ${OUTCOME} }
    }`,
    {
      customer: {
        firstName: 'Kim',
        lastName: 'Guest',
        emailAddress: `${randomUUID()}@example.com`,
        ...(about.phone !== undefined && { phoneNumber: about.phone }),
      },
      address: {
        fullName: 'Kim Guest',
        streetLine1: '1 Main Street',
        city: 'Town',
        postalCode: '10115',
        countryCode: channel.country,
      },
      way: [channel.ways[way]],
      wishes: { customFields: { wantedAt: about.wantedAt, note: about.note } },
      payment: { method: `card-${channel.code}`, metadata: {} },
    },
  );
  return paid;
}

/** Makes a key of a role that reads orders alone, as in the README. @returns it, and its id */
export async function makeApiKey(url: string): Promise<{ apiKey: string; entityId: string }> {
  const admin = await logIn(url);
  const { channels } = await admin<{ channels: { items: { id: string }[] } }>('{ channels { items { id } } }');
  const { createRole } = await admin<{ createRole: { id: string } }>(
    'mutation Role($input: CreateRoleInput!) { createRole(input: $input) { id } }',
    {
      input: {
        code: `expediter-${randomUUID()}`,
        description: 'Reads orders',
        permissions: ['ReadOrder'],
        channelIds: channels.items.map(({ id }) => id),
      },
    },
  );
  const { createApiKey } = await admin<{ createApiKey: { apiKey: string; entityId: string } }>(
    'mutation Key($input: CreateApiKeyInput!) { createApiKey(input: $input) { apiKey entityId } }',
    { input: { roleIds: [createRole.id], ...texts('Expediter') } },
  );
  return createApiKey;
}
