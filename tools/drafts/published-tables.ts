/** What a draft of the published schemas must contain. check-drafts.ts says where their files come from. */
import type { Table } from './judge-draft.ts';

const vendure: Table = {
  root: 'order',
  customer: 'customer',
  rows: [
    { field: 'serviceOrderId', right: ['id'] },
    { field: 'locationId', right: ['channels.id', 'channels.code', 'channels.token'], isOpen: true },
    { field: 'member.id', right: ['customer.id'], also: ['id'] },
    { field: 'member.name', right: ['customer.firstName customer.lastName'], also: ['shippingAddress.fullName'] },
    { field: 'member.email', right: ['customer.emailAddress'] },
    { field: 'member.phone', right: ['customer.phoneNumber|shippingAddress.phoneNumber'] },
    // Its `type` says who sells: Regular, Seller, Aggregate.
    {
      field: 'fulfillment.type',
      right: [
        'shippingLines.shippingMethod.code',
        'shippingLines.shippingMethod.name',
        'shippingLines.shippingMethod.fulfillmentHandlerCode',
      ],
      isOpen: true,
    },
    { field: 'fulfillment.destination.line1', right: ['shippingAddress.streetLine1'] },
    { field: 'fulfillment.destination.line2', right: ['shippingAddress.streetLine2'] },
    { field: 'fulfillment.destination.postalCode', right: ['shippingAddress.postalCode'] },
    { field: 'fulfillment.destination.city', right: ['shippingAddress.city'] },
    { field: 'fulfillment.destination.country', right: ['shippingAddress.countryCode'] },
    { field: 'fulfillment.requestedAt', right: ['customFields.wantedAt'] },
    { field: 'items.serviceItemId', right: ['lines.productVariant.sku', 'lines.productVariant.id'] },
    { field: 'items.name', right: ['lines.productVariant.name', 'lines.productVariant.product.name'] },
    { field: 'items.quantity', right: ['lines.quantity'] },
    { field: 'items.unitPrice', right: ['lines.unitPriceWithTax'], units: 'whole' },
    { field: 'items.notes', right: ['lines.customFields.note'] },
    { field: 'items.modifiers', right: ['lines.customFields.modifiers'] },
    { field: 'money.subtotal', right: ['subTotalWithTax', 'lines.linePriceWithTax'], units: 'whole' },
    { field: 'discounts.amount|money.discount', right: ['', 'discounts.amountWithTax'], units: 'whole' },
    { field: 'money.tax', right: ['totalWithTax total', 'taxSummary.taxTotal'], units: 'whole' },
    { field: 'money.tip', right: [''] },
    { field: 'money.fee', right: ['shippingWithTax'], also: ['surcharges.priceWithTax'], units: 'whole' },
    { field: 'money.total', right: ['totalWithTax'], units: 'whole' },
    { field: 'money.currency', right: ['currencyCode'] },
    { field: 'notes', right: ['customFields.note'] },
    { field: 'placedAt', right: ['orderPlacedAt'] },
    // It keeps no time of the cancellation.
    { field: 'cancelledAt', right: ['state', 'state orderPlacedAt', 'state updatedAt'], isOpen: true },
  ],
};

const CURRENCIES = ['total', 'subtotal'].flatMap((sum) => [`${sum}.currency`, `${sum}.gross.currency`]);

const saleor: Table = {
  root: 'order',
  customer: 'user',
  rows: [
    { field: 'serviceOrderId', right: ['id'] },
    { field: 'locationId', right: ['channel.id', 'channel.slug'], isOpen: true },
    { field: 'member.id', right: ['user.id'], also: ['id'] },
    {
      field: 'member.name',
      right: ['user.firstName user.lastName', 'shippingAddress.firstName shippingAddress.lastName'],
    },
    { field: 'member.email', right: ['userEmail|user.email'] },
    { field: 'member.phone', right: ['shippingAddress.phone'] },
    // A union: a Warehouse is where the customer fetches it.
    { field: 'fulfillment.type', right: ['deliveryMethod'] },
    { field: 'fulfillment.destination.line1', right: ['shippingAddress.streetAddress1'] },
    { field: 'fulfillment.destination.line2', right: ['shippingAddress.streetAddress2'] },
    { field: 'fulfillment.destination.postalCode', right: ['shippingAddress.postalCode'] },
    { field: 'fulfillment.destination.city', right: ['shippingAddress.city'] },
    { field: 'fulfillment.destination.country', right: ['shippingAddress.country.code'] },
    { field: 'fulfillment.requestedAt', right: ['', 'metadata.value', 'metafield', 'metafields'] },
    {
      field: 'items.serviceItemId',
      right: ['lines.productSku', 'lines.productVariantId', 'lines.variant.sku', 'lines.variant.id'],
    },
    { field: 'items.name', right: ['lines.productName|lines.variantName'] },
    { field: 'items.quantity', right: ['lines.quantity'] },
    {
      field: 'items.unitPrice',
      right: ['lines.unitPrice.gross.amount', 'lines.undiscountedUnitPrice.gross.amount'],
      units: 'decimal',
    },
    { field: 'items.modifiers', right: ['lines.metadata.key lines.metadata.value', 'lines.metadata'], isOpen: true },
    { field: 'money.subtotal', right: ['subtotal.gross.amount'], units: 'decimal' },
    {
      field: 'discounts.amount|money.discount',
      right: ['', 'discounts.total.amount', 'undiscountedTotal.gross.amount total.gross.amount'],
      units: 'decimal',
    },
    { field: 'money.tax', right: ['total.tax.amount', 'total.gross.amount total.net.amount'], units: 'decimal' },
    { field: 'money.tip', right: [''] },
    { field: 'money.fee', right: ['shippingPrice.gross.amount'], units: 'decimal' },
    { field: 'money.total', right: ['total.gross.amount'], units: 'decimal' },
    { field: 'money.currency', right: ['channel.currencyCode', ...CURRENCIES] },
    { field: 'notes', right: ['customerNote'] },
    { field: 'placedAt', right: ['created'] },
    { field: 'cancelledAt', right: ['status', 'status updatedAt', 'status created'], isOpen: true },
  ],
};

const shopifyAdmin: Table = {
  root: 'order',
  customer: 'customer',
  rows: [
    { field: 'serviceOrderId', right: ['id'] },
    {
      field: 'locationId',
      right: ['retailLocation.id', 'fulfillmentOrders.assignedLocation.location.id'],
      isOpen: true,
    },
    { field: 'member.id', right: ['customer.id'], also: ['id'] },
    { field: 'member.name', right: ['customer.displayName', 'customer.firstName customer.lastName'] },
    { field: 'member.email', right: ['email|customer.defaultEmailAddress.emailAddress'] },
    { field: 'member.phone', right: ['phone|customer.defaultPhoneNumber.phoneNumber|shippingAddress.phone'] },
    {
      field: 'fulfillment.type',
      right: [
        'fulfillmentOrders.deliveryMethod.methodType',
        'shippingLine.deliveryCategory',
        'shippingLines.deliveryCategory',
        'requiresShipping',
      ],
      isOpen: true,
    },
    { field: 'fulfillment.destination.line1', right: ['shippingAddress.address1'] },
    { field: 'fulfillment.destination.line2', right: ['shippingAddress.address2'] },
    { field: 'fulfillment.destination.postalCode', right: ['shippingAddress.zip'] },
    { field: 'fulfillment.destination.city', right: ['shippingAddress.city'] },
    { field: 'fulfillment.destination.country', right: ['shippingAddress.countryCodeV2'] },
    {
      field: 'fulfillment.requestedAt',
      right: ['', 'customAttributes.value', 'metafield.value', 'metafields.value', 'fulfillmentOrders.fulfillBy'],
    },
    {
      field: 'items.serviceItemId',
      right: ['lineItems.sku', 'lineItems.variant.sku', 'lineItems.variant.id', 'lineItems.sku lineItems.variant.id'],
    },
    { field: 'items.name', right: ['lineItems.name', 'lineItems.title|lineItems.variantTitle'] },
    { field: 'items.quantity', right: ['lineItems.quantity'] },
    { field: 'items.unitPrice', right: ['lineItems.originalUnitPriceSet.shopMoney.amount'], units: 'decimal' },
    {
      field: 'items.modifiers',
      right: ['lineItems.customAttributes.key lineItems.customAttributes.value', 'lineItems.customAttributes'],
      isOpen: true,
    },
    { field: 'money.subtotal', right: ['subtotalPriceSet.shopMoney.amount'], units: 'decimal' },
    { field: 'discounts.amount|money.discount', right: ['totalDiscountsSet.shopMoney.amount'], units: 'decimal' },
    { field: 'money.tax', right: ['totalTaxSet.shopMoney.amount'], units: 'decimal' },
    { field: 'money.tip', right: ['totalTipReceivedSet.shopMoney.amount'], units: 'decimal' },
    { field: 'money.fee', right: ['totalShippingPriceSet.shopMoney.amount'], units: 'decimal' },
    { field: 'money.total', right: ['totalPriceSet.shopMoney.amount'], units: 'decimal' },
    { field: 'money.currency', right: ['currencyCode', 'totalPriceSet.shopMoney.currencyCode'] },
    { field: 'money.pricesIncludeTax', right: ['', 'taxesIncluded'] },
    { field: 'notes', right: ['note'] },
    { field: 'placedAt', right: ['processedAt', 'createdAt'] },
    { field: 'cancelledAt', right: ['cancelledAt'] },
  ],
};

const shopifyCustomer: Table = {
  root: 'order',
  customer: 'customer',
  rows: [
    { field: 'serviceOrderId', right: ['id'] },
    { field: 'locationId', right: ['locationName'], isOpen: true },
    { field: 'member.id', right: ['customer.id'], also: ['id'] },
    { field: 'member.name', right: ['customer.displayName', 'customer.firstName customer.lastName'] },
    { field: 'member.email', right: ['email|customer.emailAddress.emailAddress'] },
    { field: 'member.phone', right: ['phone|customer.phoneNumber.phoneNumber|shippingAddress.phoneNumber'] },
    {
      field: 'fulfillment.type',
      right: ['pickupInformation', 'pickupInformation.status', 'requiresShipping'],
      isOpen: true,
    },
    { field: 'fulfillment.destination.line1', right: ['shippingAddress.address1'] },
    { field: 'fulfillment.destination.line2', right: ['shippingAddress.address2'] },
    { field: 'fulfillment.destination.postalCode', right: ['shippingAddress.zip'] },
    { field: 'fulfillment.destination.city', right: ['shippingAddress.city'] },
    { field: 'fulfillment.destination.country', right: ['shippingAddress.territoryCode'] },
    { field: 'fulfillment.requestedAt', right: ['', 'customAttributes.value', 'metafield.value', 'metafields.value'] },
    {
      field: 'items.serviceItemId',
      right: ['lineItems.sku', 'lineItems.variantId', 'lineItems.sku lineItems.variantId'],
    },
    {
      field: 'items.name',
      right: ['lineItems.name', 'lineItems.title|lineItems.variantTitle', 'lineItems.presentmentTitle'],
    },
    { field: 'items.quantity', right: ['lineItems.quantity'] },
    { field: 'items.unitPrice', right: ['lineItems.price.amount'], units: 'decimal' },
    {
      field: 'items.modifiers',
      right: ['lineItems.customAttributes.key lineItems.customAttributes.value', 'lineItems.customAttributes'],
      isOpen: true,
    },
    { field: 'money.subtotal', right: ['subtotal.amount', 'subtotalBeforeDiscounts.amount'], units: 'decimal' },
    {
      field: 'discounts.amount|money.discount',
      right: ['discountInformation.totalDiscounts.amount', 'subtotalBeforeDiscounts.amount subtotal.amount'],
      units: 'decimal',
      isOpen: true,
    },
    { field: 'money.tax', right: ['totalTax.amount'], units: 'decimal' },
    { field: 'money.tip', right: ['totalTip.amount'], units: 'decimal' },
    { field: 'money.fee', right: ['totalShipping.amount'], units: 'decimal' },
    { field: 'money.total', right: ['totalPrice.amount'], units: 'decimal' },
    { field: 'money.currency', right: ['currencyCode', 'totalPrice.currencyCode'] },
    { field: 'notes', right: ['note'] },
    { field: 'placedAt', right: ['processedAt', 'createdAt'] },
    { field: 'cancelledAt', right: ['cancelledAt'] },
  ],
};

/** By the file's name. Null: the schema has no order by an id, and must be refused. */
export const TABLES: Readonly<Record<string, Table | null>> = {
  'vendure-shop': vendure,
  'vendure-admin': vendure,
  saleor,
  'shopify-admin': shopifyAdmin,
  'shopify-customer': shopifyCustomer,
  'shopify-storefront': null,
};
