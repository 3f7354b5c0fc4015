import { styleText } from 'node:util';
import type { FulfillmentType } from '../../src/core/domain/lifecycle.ts';

export type Who = 'platform' | 'service' | 'POS' | 'member' | 'staff';
type Mood = keyof typeof MOODS;

/** The printed events of the orders, one line each. */
export type Timeline = {
  /** Starts an order's clock. Events of orders without a clock are not printed. */
  begin(order: { serviceOrderId: string; fulfillment: FulfillmentType | null }): void;
  print(serviceOrderId: string, who: Who, what: string, mood?: Mood): void;
  /** Prints an event that concerns all orders. */
  printOfAll(who: 'Postgres', what: string, mood: Mood): void;
  /** Prints the columns' names. */
  head(): void;
};

const WHO_WIDTH = 'platform'.length;
const TYPE_WIDTH = 'delivery'.length;
const ID_WIDTH = 'order-0123456789'.length;
const COLOURS = { platform: 'blue', service: 'cyan', POS: 'yellow', member: 'magenta', staff: 'white' } as const;
const MOODS = { good: 'green', bad: 'red' } as const;

export function journeyLines(print: (line: string) => void, colourful: boolean): Timeline {
  const orders = new Map<string, { fulfillment: FulfillmentType | null; since: number }>();
  const paint = (colour: Parameters<typeof styleText>[0], text: string): string =>
    colourful ? styleText(colour, text, { validateStream: false }) : text;
  const row = (time: string, type: string, id: string, who: string, what: string): string =>
    `  ${time.padStart(8)}  ${type.padEnd(TYPE_WIDTH)}  ${id.padEnd(ID_WIDTH)}  ${who}  ${what}`;

  return {
    begin({ serviceOrderId, fulfillment }) {
      const known = orders.get(serviceOrderId);
      if (known === undefined) orders.set(serviceOrderId, { fulfillment, since: performance.now() });
      // It could not be read when its clock was started.
      else known.fulfillment ??= fulfillment;
    },
    print(serviceOrderId, who, what, mood) {
      const order = orders.get(serviceOrderId);
      if (order === undefined) return;
      const time = `+${((performance.now() - order.since) / 1000).toFixed(3)}s`;
      const actor = paint(COLOURS[who], who.padEnd(WHO_WIDTH));
      print(
        row(time, order.fulfillment ?? '', serviceOrderId, actor, mood === undefined ? what : paint(MOODS[mood], what)),
      );
    },
    printOfAll(who, what, mood) {
      print(row('', '', '', who, paint(MOODS[mood], what)));
    },
    head() {
      print(paint('dim', row('time', 'type', 'order', 'who'.padEnd(WHO_WIDTH), 'what')));
    },
  };
}
