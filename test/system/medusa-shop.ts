/** A running Medusa by its own two APIs: what its dashboard and a storefront do. */
type Data = Record<string, unknown>;
type Currency = 'eur' | 'usd' | 'jpy';
type Dish = 'burger' | 'fries' | 'beer';

export type Line = { title: string; quantity: number; total: number; id: string };
/** What the Admin API says of an order. Amounts are decimals of the currency's major unit. */
export type AdminOrder = {
  id: string;
  status: string;
  currency_code: Currency;
  total: number;
  tax_total: number;
  credit_line_total: number;
  payment_status: string;
  fulfillment_status: string;
  metadata: { expediter?: Data };
  items: Line[];
  fulfillments: { id: string; labels: { tracking_url: string }[] }[];
  payment_collections: { payments: { id: string }[] }[];
};

export type Basket = {
  currency?: Currency;
  dishes?: [Dish, number][];
  way?: 'delivery' | 'pickup';
  codes?: ('TEN' | 'FREE' | 'FREESHIP')[];
  phone?: string | null;
  /** As a storefront writes it at the cart and at each line. */
  metadata?: Data;
  notes?: string;
};

export type MedusaShop = {
  /** A new secret API key. */
  issueKey(): Promise<{ id: string; token: string }>;
  admin(path: string, body?: Data): Promise<Data>;
  order(id: string): Promise<AdminOrder>;
  /** Checks out as a guest, with the payment method that needs no money. @returns the order's id */
  checkOut(basket?: Basket): Promise<string>;
  /** Changes an order that is placed: the new quantity of each line that changes, and more of other dishes. */
  edit(id: string, about: { quantities?: [title: string, quantity: number][]; more?: [Dish, number][] }): Promise<void>;
};

const BASKET: [Dish, number][] = [
  ['burger', 2],
  ['fries', 1],
  ['beer', 1],
];
const COUNTRIES = { eur: 'de', usd: 'us', jpy: 'jp' } as const;
const MENU = {
  burger: { title: 'Classic Burger', eur: 12.9, usd: 13.49, jpy: 1290 },
  fries: { title: 'Fries', eur: 4.5, usd: 3.99, jpy: 450 },
  beer: { title: 'Pale Ale', eur: 4.8, usd: 5.25, jpy: 680 },
} as const;
const DELIVERY = { eur: 3.9, usd: 4.25, jpy: 350 };
const CURRENCIES = ['eur', 'usd', 'jpy'] as const;

const pricesOf = (amounts: Record<Currency, number>) =>
  CURRENCIES.map((currency_code) => ({ currency_code, amount: amounts[currency_code] }));

async function ask(url: string, headers: Data, body?: Data): Promise<Data> {
  const response = await fetch(url, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${new URL(url).pathname} answered ${response.status}: ${text.slice(0, 500)}`);
  return JSON.parse(text) as Data;
}

type Made = <What = { id: string }>(path: string, kind: string, body?: Data) => Promise<What>;

/** Sets an empty shop up: one restaurant that sells in EUR and JPY with the tax, and in USD without. */
export async function setUpMedusa(url: string, user: { email: string; password: string }): Promise<MedusaShop> {
  const { token } = await ask(`${url}/auth/user/emailpass`, {}, user);
  const headers = { authorization: `Bearer ${String(token)}` };
  const admin: MedusaShop['admin'] = (path, body) => ask(`${url}/admin/${path}`, headers, body);
  /** Makes, changes or reads something. @returns what the answer has under its kind */
  const made = async <What = { id: string }>(path: string, kind: string, body?: Data) =>
    (await admin(path, body))[kind] as What;

  const channel = await made('sales-channels', 'sales_channel', { name: 'Trattoria Nord' });
  const app = await made<{ id: string; token: string }>('api-keys', 'api_key', { title: 'app', type: 'publishable' });
  await admin(`api-keys/${app.id}/sales-channels`, { add: [channel.id] });
  const [profile] = await made<{ id: string }[]>('shipping-profiles', 'shipping_profiles');
  const about = { channel: channel.id, profile: profile?.id ?? '' };
  const regions = await makeRegions(made);
  const ways = await makeWays(made, about);
  const variants = await makeMenu(made, { ...about, tax: regions.get('eur')?.tax });
  await makePromotions(made);

  const storefront = (path: string, body: Data) =>
    ask(`${url}/store/${path}`, { 'x-publishable-api-key': app.token }, body);
  const order = (id: string) => made<AdminOrder>(`orders/${id}?fields=+currency_code,*fulfillments.labels`, 'order');
  return {
    admin,
    order,
    issueKey: () => made('api-keys', 'api_key', { title: 'Expediter', type: 'secret' }),
    async checkOut({
      currency = 'eur',
      dishes = BASKET,
      way = 'delivery',
      codes = [],
      phone = '+493012345678',
      metadata = {},
      notes,
    } = {}) {
      const items = dishes.map(([dish, quantity]) => ({
        variant_id: variants.get(dish),
        quantity,
        ...(notes !== undefined && { metadata: { notes } }),
      }));
      const { cart } = (await storefront('carts', { region_id: regions.get(currency)?.region, items })) as {
        cart: { id: string };
      };
      const address = {
        first_name: 'Ada',
        last_name: 'Lovelace',
        address_1: 'Torstraße 1',
        city: 'Berlin',
        postal_code: '10119',
        country_code: COUNTRIES[currency],
        ...(phone !== null && { phone }),
      };
      await storefront(`carts/${cart.id}`, { email: 'ada@example.com', shipping_address: address, metadata });
      await storefront(`carts/${cart.id}/shipping-methods`, { option_id: ways.get(way) });
      if (codes.length > 0) await storefront(`carts/${cart.id}/promotions`, { promo_codes: codes });
      const { payment_collection } = (await storefront('payment-collections', { cart_id: cart.id })) as {
        payment_collection: { id: string };
      };
      await storefront(`payment-collections/${payment_collection.id}/payment-sessions`, {
        provider_id: 'pp_system_default',
      });
      const done = (await storefront(`carts/${cart.id}/complete`, {})) as { order: { id: string } };
      return done.order.id;
    },
    async edit(id, { quantities = [], more = [] }) {
      const { items } = await order(id);
      await admin('order-edits', { order_id: id });
      for (const [title, quantity] of quantities) {
        const line = items.find((each) => each.title === title);
        await admin(`order-edits/${id}/items/item/${line?.id}`, { quantity });
      }
      if (more.length > 0) {
        const added = more.map(([dish, quantity]) => ({ variant_id: variants.get(dish), quantity }));
        await admin(`order-edits/${id}/items`, { items: added });
      }
      await admin(`order-edits/${id}/confirm`, {});
    },
  };
}

/** @returns the region of each currency, and its tax */
async function makeRegions(made: Made): Promise<Map<Currency, { region: string; tax: string }>> {
  const [store] = await made<{ id: string }[]>('stores', 'stores');
  await made(`stores/${store?.id}`, 'store', {
    supported_currencies: CURRENCIES.map((currency_code) => ({
      currency_code,
      is_default: currency_code === 'eur',
      is_tax_inclusive: currency_code !== 'usd',
    })),
  });
  const regions = new Map<Currency, { region: string; tax: string }>();
  for (const [currency, country, rate] of [
    ['eur', 'de', 19],
    ['usd', 'us', 8.875],
    ['jpy', 'jp', 8],
  ] as const) {
    const region = await made('regions', 'region', {
      name: country,
      currency_code: currency,
      countries: [country],
      payment_providers: ['pp_system_default'],
    });
    const tax = await made('tax-regions', 'tax_region', {
      country_code: country,
      provider_id: 'tp_system',
      default_tax_rate: { name: `Tax ${country}`, code: country, rate },
    });
    regions.set(currency, { region: region.id, tax: tax.id });
  }
  return regions;
}

/** @returns the shipping option of each way to the member */
async function makeWays(
  made: Made,
  { channel, profile }: { channel: string; profile: string },
): Promise<Map<string, string>> {
  const kitchen = await made('stock-locations', 'stock_location', { name: 'Kitchen' });
  await made(`stock-locations/${kitchen.id}/sales-channels`, 'stock_location', { add: [channel] });
  await made(`stock-locations/${kitchen.id}/fulfillment-providers`, 'stock_location', { add: ['manual_manual'] });
  await made(`stock-locations/${kitchen.id}/fulfillment-sets`, 'stock_location', { name: 'Food', type: 'shipping' });
  const { fulfillment_sets } = await made<{ fulfillment_sets: { id: string }[] }>(
    `stock-locations/${kitchen.id}?fields=*fulfillment_sets`,
    'stock_location',
  );
  const { service_zones } = await made<{ service_zones: { id: string }[] }>(
    `fulfillment-sets/${fulfillment_sets[0]?.id}/service-zones`,
    'fulfillment_set',
    {
      name: 'World',
      geo_zones: Object.values(COUNTRIES).map((country_code) => ({ type: 'country', country_code })),
    },
  );
  const ways = new Map<string, string>();
  for (const [code, amounts] of [
    ['delivery', DELIVERY],
    ['pickup', { eur: 0, usd: 0, jpy: 0 }],
  ] as const) {
    const option = await made('shipping-options', 'shipping_option', {
      name: code === 'delivery' ? 'Courier' : 'At the counter',
      service_zone_id: service_zones[0]?.id,
      shipping_profile_id: profile,
      provider_id: 'manual_manual',
      price_type: 'flat',
      type: { label: code, description: code, code },
      prices: pricesOf(amounts),
      rules: [],
    });
    ways.set(code, option.id);
  }
  return ways;
}

/** Food has the reduced tax in Germany. @returns the variant of each dish */
async function makeMenu(
  made: Made,
  { channel, profile, tax }: { channel: string; profile: string; tax: string | undefined },
): Promise<Map<Dish, string>> {
  const variants = new Map<Dish, string>();
  const food: string[] = [];
  for (const [sku, { title, ...amounts }] of Object.entries(MENU) as [Dish, (typeof MENU)[Dish]][]) {
    const product = await made<{ id: string; variants: { id: string }[] }>('products', 'product', {
      title,
      status: 'published',
      shipping_profile_id: profile,
      sales_channels: [{ id: channel }],
      options: [{ title: 'Size', values: ['Regular'] }],
      variants: [
        {
          title: sku === 'burger' ? 'Regular' : 'Default variant',
          sku,
          manage_inventory: false,
          options: { Size: 'Regular' },
          prices: pricesOf(amounts),
        },
      ],
    });
    variants.set(sku, product.variants[0]?.id ?? '');
    if (sku !== 'beer') food.push(product.id);
  }
  await made('tax-rates', 'tax_rate', {
    tax_region_id: tax,
    name: 'Tax de reduced',
    code: 'de-reduced',
    rate: 7,
    rules: food.map((reference_id) => ({ reference: 'product', reference_id })),
  });
  return variants;
}

async function makePromotions(made: Made): Promise<void> {
  for (const [code, value, target_type] of [
    ['TEN', 10, 'items'],
    ['FREE', 100, 'items'],
    ['FREESHIP', 100, 'shipping_methods'],
  ] as const) {
    await made('promotions', 'promotion', {
      code,
      type: 'standard',
      status: 'active',
      is_automatic: false,
      application_method: { type: 'percentage', value, target_type, allocation: 'across' },
    });
  }
}
