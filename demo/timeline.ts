import { styleText } from 'node:util';
import type { FulfillmentType } from '../src/core/domain/lifecycle.ts';

export type Who = 'platform' | 'POS' | 'member';

/** Prints what happens to the orders, one line each, as it happens. */
export type Timeline = {
  /** From now on the order's time is counted and its steps are printed; what is told of other orders is not. */
  begin(order: { serviceOrderId: string; fulfillment: FulfillmentType }): void;
  tell(serviceOrderId: string, who: Who, what: string, mood?: 'good' | 'bad'): void;
  /** The columns' names. */
  head(): void;
};

const WHO_WIDTH = 'platform'.length;
const TYPE_WIDTH = 'delivery'.length;
const ID_WIDTH = 'order-0123456789'.length;
const COLOURS = { platform: 'blue', POS: 'yellow', member: 'magenta' } as const;
const MOODS = { good: 'green', bad: 'red' } as const;

export function timeline(print: (line: string) => void, colourful: boolean): Timeline {
  const orders = new Map<string, { fulfillment: FulfillmentType; since: number }>();
  const paint = (colour: Parameters<typeof styleText>[0], text: string): string =>
    colourful ? styleText(colour, text, { validateStream: false }) : text;
  const row = (time: string, type: string, id: string, who: string, what: string): string =>
    `  ${time.padStart(8)}  ${type.padEnd(TYPE_WIDTH)}  ${id.padEnd(ID_WIDTH)}  ${who}  ${what}`;

  return {
    begin({ serviceOrderId, fulfillment }) {
      if (!orders.has(serviceOrderId)) orders.set(serviceOrderId, { fulfillment, since: performance.now() });
    },
    tell(serviceOrderId, who, what, mood) {
      const order = orders.get(serviceOrderId);
      if (order === undefined) return;
      const time = `+${((performance.now() - order.since) / 1000).toFixed(3)}s`;
      const actor = paint(COLOURS[who], who.padEnd(WHO_WIDTH));
      print(row(time, order.fulfillment, serviceOrderId, actor, mood === undefined ? what : paint(MOODS[mood], what)));
    },
    head() {
      print(paint('dim', row('time', 'type', 'order', 'who'.padEnd(WHO_WIDTH), 'what')));
    },
  };
}
