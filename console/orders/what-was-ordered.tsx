import { showMoney } from '../parts/show-money.ts';
import type { ShownOrder } from '../wire.ts';

type Ordered = NonNullable<ShownOrder['ordered']>;
type Item = Ordered['items'][number];
/** An older process of the service does not send the parts. */
type Given = Pick<Ordered, 'items' | 'money'> & Partial<Ordered>;

/** Items and money, without member data. */
export function WhatWasOrdered({ ordered: { items, money, fees = [], taxes = [] } }: { ordered: Given }) {
  const parts = {
    fee: fees,
    tax: taxes.map(({ name, rate, amount }) => ({ name: rate === undefined ? name : `${name} (${rate} %)`, amount })),
  };
  const sums = (['subtotal', 'discount', 'tax', 'fee', 'tip', 'total'] as const)
    .flatMap((sum) => {
      const listed = sum === 'fee' || sum === 'tax' ? parts[sum] : [];
      return (listed.length > 0 ? listed : [{ name: sum, amount: money[sum] }]).map((each) => ({ ...each, sum }));
    })
    .filter(({ sum, amount }) => sum === 'total' || amount > 0);
  const price = (minorUnits: number): string => showMoney(minorUnits, money.currency);
  return (
    <div class="orders-contents">
      <ul class="lined orders-items">
        {items.map((item, i) => (
          <li key={i}>
            <ItemLine item={item} price={price} />
            {item.ageRestricted && <p class="orders-age">Check the customer's age</p>}
            <Modifiers of={item.modifiers} price={price} />
          </li>
        ))}
      </ul>
      <dl class="orders-money">
        {sums.map(({ sum, name, amount }, i) => [
          <dt key={i}>{name}</dt>,
          <dd key={`of ${i}`}>{`${sum === 'discount' ? '−' : ''}${price(amount)}`}</dd>,
        ])}
      </dl>
    </div>
  );
}

function Modifiers({ of, price }: { of: Item['modifiers']; price: (minorUnits: number) => string }) {
  if (of.length === 0) return null;
  return (
    <ul>
      {of.map((modifier, i) => (
        <li key={i}>
          <ItemLine item={modifier} price={price} />
          <Modifiers of={modifier.modifiers ?? []} price={price} />
        </li>
      ))}
    </ul>
  );
}

type AboutItem = { item: Pick<Item, 'quantity' | 'name' | 'unitPrice'>; price: (minorUnits: number) => string };

function ItemLine({ item: { quantity, name, unitPrice }, price }: AboutItem) {
  return (
    <p class="orders-item">
      <b>{quantity} ×</b> <span>{name}</span>
      {unitPrice !== null && (
        <span class="faint">
          {price(unitPrice)}
          {quantity > 1 && ' each'}
        </span>
      )}
    </p>
  );
}
