/** What `platform init` must draft from three schemas with traps, and that it refuses one without an order. */
import { readFile } from 'node:fs/promises';
import { buildSchema, type GraphQLSchema } from 'graphql';
import { describe, expect, it } from 'vitest';
import { draftModule } from '../../src/platform/draft-module.ts';
import { judgeDraft, typeErrorsOf, type Table } from '../../tools/drafts/judge-draft.ts';

const readSchema = async (name: string): Promise<GraphQLSchema> =>
  buildSchema(await readFile(new URL(`drafts/${name}.graphql`, import.meta.url), 'utf8'));

/** Whole minor units, net next to gross, and what the shop added is in `customFields`. */
const cafe: Table = {
  root: 'order',
  customer: 'customer',
  rows: [
    { field: 'serviceOrderId', right: ['id'] },
    { field: 'locationId', right: ['outlet.id'] },
    { field: 'member.id', right: ['customer.id'], also: ['id'] },
    { field: 'member.name', right: ['customer.firstName customer.lastName'] },
    { field: 'member.email', right: ['customer.emailAddress'] },
    {
      field: 'member.phone',
      right: [
        'customer.phoneNumber',
        'shippingAddress.phoneNumber',
        'customer.phoneNumber shippingAddress.phoneNumber',
      ],
    },
    { field: 'fulfillment.type', right: ['customFields.handover'] },
    { field: 'fulfillment.destination.line1', right: ['shippingAddress.streetLine1'] },
    { field: 'fulfillment.destination.line2', right: ['shippingAddress.streetLine2'] },
    { field: 'fulfillment.destination.postalCode', right: ['shippingAddress.postalCode'] },
    { field: 'fulfillment.destination.city', right: ['shippingAddress.city'] },
    { field: 'fulfillment.destination.country', right: ['shippingAddress.countryCode'] },
    { field: 'fulfillment.requestedAt', right: ['customFields.wantedAt'] },
    { field: 'items.serviceItemId', right: ['lines.variant.sku', 'lines.variant.id'] },
    { field: 'items.name', right: ['lines.variant.name', 'lines.variant.product.name'] },
    { field: 'items.quantity', right: ['lines.quantity'] },
    { field: 'items.unitPrice', right: ['lines.unitPriceWithTax'], units: 'whole' },
    { field: 'items.notes', right: ['lines.customFields.note'] },
    { field: 'items.modifiers.serviceModifierId', right: ['lines.customFields.modifiers.sku'] },
    { field: 'items.modifiers.name', right: ['lines.customFields.modifiers.name'] },
    { field: 'items.modifiers.quantity', right: ['lines.customFields.modifiers.quantity'] },
    { field: 'items.modifiers.unitPrice', right: ['lines.customFields.modifiers.priceWithTax'], units: 'whole' },
    { field: 'money.subtotal', right: ['subTotalWithTax'], units: 'whole' },
    { field: 'discounts.amount|money.discount', right: ['discounts.amountWithTax'], units: 'whole' },
    { field: 'money.tax', right: ['totalTax', 'totalWithTax total'], units: 'whole' },
    { field: 'money.tip', right: [''] },
    { field: 'money.fee', right: ['shippingWithTax'], also: ['surcharges.priceWithTax'], units: 'whole' },
    { field: 'money.total', right: ['totalWithTax'], units: 'whole' },
    { field: 'money.currency', right: ['currencyCode'] },
    { field: 'notes', right: ['customFields.kitchenNote'] },
    { field: 'placedAt', right: ['placedAt'] },
    { field: 'cancelledAt', right: ['cancelledAt'], also: ['state'] },
  ],
};

/** An order by `node(id)`, decimals two levels down in two currencies, a union, and metafields. */
const market: Table = {
  root: 'node',
  customer: 'customer',
  rows: [
    { field: 'serviceOrderId', right: ['id'] },
    { field: 'locationId', right: ['retailer.id'] },
    { field: 'member.id', right: ['customer.id'], also: ['id'] },
    { field: 'member.name', right: ['customer.displayName', 'customer.firstName customer.lastName'] },
    { field: 'member.email', right: ['customer.email', 'email', 'customer.email email'] },
    { field: 'member.phone', right: ['customer.phone', 'phone', 'customer.phone phone'] },
    { field: 'fulfillment.type', right: ['deliveryMethod'] },
    { field: 'fulfillment.destination.line1', right: ['deliveryMethod.destination.address1'] },
    { field: 'fulfillment.destination.line2', right: ['deliveryMethod.destination.address2'] },
    { field: 'fulfillment.destination.postalCode', right: ['deliveryMethod.destination.zip'] },
    { field: 'fulfillment.destination.city', right: ['deliveryMethod.destination.city'] },
    { field: 'fulfillment.destination.country', right: ['deliveryMethod.destination.countryCodeV2'] },
    // A member's wish for a time may be in a metafield. Days until an invoice is due are none.
    { field: 'fulfillment.requestedAt', right: ['', 'metafields.value', 'metafield.value', 'attributes.value'] },
    { field: 'items.serviceItemId', right: ['lineItems.sku'] },
    { field: 'items.name', right: ['lineItems.title', 'lineItems.title lineItems.variantTitle'] },
    { field: 'items.quantity', right: ['lineItems.quantity'] },
    { field: 'items.unitPrice', right: ['lineItems.originalUnitPriceSet.shopMoney.amount'], units: 'decimal' },
    {
      field: 'items.modifiers',
      right: ['lineItems.attributes.key lineItems.attributes.value', 'lineItems.attributes'],
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

/** Everything may be null, lines are in groups, choices are lists in lists, and times are numbers. */
const canteen: Table = {
  root: 'purchase',
  customer: 'guest',
  rows: [
    { field: 'serviceOrderId', right: ['reference'] },
    { field: 'locationId', right: ['canteen.number'] },
    { field: 'member.id', right: ['guest.number'], also: ['reference'] },
    { field: 'member.name', right: ['guest.givenName guest.familyName'] },
    { field: 'member.email', right: ['guest.mail'] },
    { field: 'member.phone', right: ['guest.mobile', 'handover.address.phone', 'guest.mobile handover.address.phone'] },
    { field: 'fulfillment.type', right: ['handover'] },
    {
      field: 'fulfillment.destination.line1',
      right: ['handover.address.street handover.address.houseNumber'],
    },
    { field: 'fulfillment.destination.line2', right: ['handover.address.addition'] },
    { field: 'fulfillment.destination.postalCode', right: ['handover.address.postcode'] },
    { field: 'fulfillment.destination.city', right: ['handover.address.town'] },
    { field: 'fulfillment.destination.country', right: ['handover.address.country.iso2'] },
    { field: 'fulfillment.destination.instructions', right: ['', 'handover.instructions'] },
    { field: 'fulfillment.requestedAt', right: ['pickupSlotTs'] },
    { field: 'items.serviceItemId', right: ['fulfillmentGroups.lines.dish.plu'] },
    { field: 'items.name', right: ['fulfillmentGroups.lines.dish.label'] },
    { field: 'items.quantity', right: ['fulfillmentGroups.lines.howMany'] },
    { field: 'items.unitPrice', right: ['fulfillmentGroups.lines.priceEach'], units: 'decimal' },
    { field: 'items.notes', right: ['fulfillmentGroups.lines.remark'] },
    { field: 'items.ageRestricted', right: ['', 'fulfillmentGroups.lines.dish.minimumAge'] },
    { field: 'items.modifiers.serviceModifierId', right: ['fulfillmentGroups.lines.choices.picked.plu'] },
    { field: 'items.modifiers.name', right: ['fulfillmentGroups.lines.choices.picked.label'] },
    { field: 'items.modifiers.quantity', right: ['fulfillmentGroups.lines.choices.picked.times'] },
    {
      field: 'items.modifiers.unitPrice',
      right: ['fulfillmentGroups.lines.choices.picked.surcharge'],
      units: 'decimal',
    },
    { field: 'money.subtotal', right: ['sums.goods'], units: 'decimal' },
    { field: 'discounts.amount|money.discount', right: ['rebates.value', 'sums.rebate'], units: 'decimal' },
    { field: 'money.tax', right: ['sums.vat'], units: 'decimal' },
    { field: 'money.tip', right: ['sums.gratuity'], units: 'decimal' },
    { field: 'money.fee', right: ['sums.courier', 'charges.value'], also: ['charges.kind'], units: 'decimal' },
    { field: 'money.total', right: ['sums.payable'], units: 'decimal' },
    { field: 'money.currency', right: ['canteen.currency.iso4217'] },
    { field: 'notes', right: ['remark'] },
    { field: 'placedAt', right: ['orderedTs'] },
    { field: 'cancelledAt', right: ['cancelledTs'], also: ['status', 'orderedTs'] },
  ],
};

describe('platform init', () => {
  describe.each(Object.entries({ cafe, market, canteen }))('drafts %s', (name, table) => {
    it('with each field right or as a TODO that names it', async () => {
      const schema = await readSchema(name);
      const { rows } = judgeDraft(schema, draftModule(schema).text, table);
      expect(rows.filter(({ verdict }) => verdict === 'wrong')).toEqual([]);
      expect(rows).toHaveLength(table.rows.length);
    });

    it('on one screen, without what no ticket needs', async () => {
      const schema = await readSchema(name);
      expect(judgeDraft(schema, draftModule(schema).text, table).faults).toEqual([]);
    });
  });

  it('drafts modules whose types fit, except in the lines of a TODO', async () => {
    const names = ['cafe', 'market', 'canteen'];
    const texts = names.map(async (name) => [name, draftModule(await readSchema(name)).text] as const);
    expect(await typeErrorsOf(Object.fromEntries(await Promise.all(texts)))).toEqual([]);
  });

  it('refuses a schema that gives no order by an id', async () => {
    const schema = await readSchema('boutique');
    expect(() => draftModule(schema)).toThrow(/takes an id and returns an order/);
  });
});
