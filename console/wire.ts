/**
 * What the operator API sends, as it is once it was JSON: the server's own shapes, so that the console cannot disagree
 * with them.
 */
import type { z } from 'zod';
import type * as order from '../src/core/domain/order.ts';
import type * as board from '../src/http/operator/board-shapes.ts';
import type * as shapes from '../src/http/operator/shapes.ts';
import type * as traffic from '../src/http/operator/traffic-shapes.ts';

/** As JSON has it: a Date is a string there. */
type Wire<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? Wire<Item>[]
    : T extends object
      ? { [Key in keyof T]: Wire<T[Key]> }
      : T;
type Answer<Shape extends z.ZodType> = Wire<z.output<Shape>>;

export type BoardOrder = Answer<typeof board.BoardOrder>;
export type Attention = Answer<typeof board.Attention>;
export type BoardComplete = Answer<typeof board.BoardComplete>;

export type CanonicalOrder = Answer<typeof order.CanonicalOrder>;
export type ListedOrders = Answer<typeof shapes.ListedOrders>;
export type ShownOrder = Answer<typeof shapes.ShownOrder>;
export type Happening = ShownOrder['timeline'][number];
export type Retried = Answer<typeof shapes.Retried>;
export type Resolve = Wire<z.input<typeof shapes.Resolve>>;
export type Resolved = Answer<typeof shapes.Resolved>;

export type ListedWebhooks = Answer<typeof shapes.ListedWebhooks>;
export type ListedWebhook = ListedWebhooks['webhooks'][number];
export type ShownWebhook = Answer<typeof shapes.ShownWebhook>;
export type WebhookOutcome = ListedWebhook['outcome'];
export type Replayed = Answer<typeof shapes.Replayed>;
export type ReplayMany = Wire<z.input<typeof shapes.ReplayMany>>;
export type ReplayedMany = Answer<typeof shapes.ReplayedMany>;

export type ListedLocations = Answer<typeof shapes.ListedLocations>;
export type ListedLocation = ListedLocations['locations'][number];
export type ShownLocation = Answer<typeof shapes.ShownLocation>;
export type CheckedLocation = Answer<typeof shapes.CheckedLocation>;
export type RevokedToken = Answer<typeof shapes.RevokedToken>;
export type PausedLocation = Answer<typeof shapes.PausedLocation>;

export type Traffic = Answer<typeof traffic.Traffic>;
export type Failure = Answer<typeof shapes.Failure>;
