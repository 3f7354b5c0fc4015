import { expect, it } from 'vitest';
import { checkCancelled, type Cancelled } from '../../../tools/demo/cancel-orders.ts';

const WELL: Cancelled[] = [
  { serviceOrderId: 'a', memberStates: ['placed', 'cancelled'], ticketsAtPos: 0, cancelledAtPos: false },
  { serviceOrderId: 'b', memberStates: ['placed', 'sent', 'cancelled'], ticketsAtPos: 1, cancelledAtPos: true },
  { serviceOrderId: 'c', memberStates: ['placed', 'sent', 'picked_up'], ticketsAtPos: 1, cancelledAtPos: false },
];

it('the demo reports only an order that did not end as planned', () => {
  expect(checkCancelled(WELL)).toBeUndefined();
  expect(checkCancelled(WELL.slice(0, 2))).toContain('too late');
  for (const [nth, wrong] of [
    { ticketsAtPos: 1 },
    { cancelledAtPos: false },
    { memberStates: ['placed', 'sent', 'cancelled'] },
  ].entries()) {
    expect(checkCancelled(WELL.map((each, i) => (i === nth ? { ...each, ...wrong } : each)) as Cancelled[])).toContain(
      ['before it was sent', 'after it was sent', 'too late'][nth],
    );
  }
});
