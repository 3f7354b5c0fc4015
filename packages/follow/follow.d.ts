/** An order's state, as a member may see it. Fields may be added. */
export type Update = {
  /** The number of the update, higher than in all earlier updates. 0 if the service has not read the order yet. */
  sequence: number;
  /** What the POS reported. Null before the POS reported anything. */
  status: 'received' | 'in_progress' | 'ready' | 'en_route' | 'completed' | 'failed' | 'cancelled' | null;
  /** The state to show to the member. */
  memberState:
    | 'placed'
    | 'sent'
    | 'confirmed'
    | 'preparing'
    | 'ready_for_pickup'
    | 'ready_for_delivery'
    | 'out_for_delivery'
    | 'picked_up'
    | 'delivered'
    | 'failed'
    | 'cancelled';
  fulfillment?: 'pickup' | 'delivery';
  /** The code that staff call out. */
  callOutCode?: string;
  /** The state of a requested cancel. `requested`: no answer yet. `refused`: the restaurant makes the order anyway. */
  cancellation?: 'requested' | 'refused';
  /** When the member wants the order, as an ISO 8601 instant. Missing if the member wants it as soon as possible. */
  requestedAt?: string;
  /** Why the order failed or was cancelled, in words for the member. */
  reason?: string;
  /** The reason as a code, for programs. `docs/order-life.md` explains the closed list of codes. */
  reasonCode?: string;
  /** The platform's ids of the items that are the reason, such as items out of stock. */
  itemIds?: string[];
  /** The restaurant's current estimates: when the order is ready, and when it reaches the member. */
  estimatedReadyAt?: string;
  estimatedDeliveryAt?: string;
  /** The courier's tracking page: an https: URL. */
  trackingUrl?: string;
  /** When the change happened, by the POS's clock. Only a `message` has this time. */
  occurredAt?: string;
  /** When the service applied the change. */
  appliedAt?: string;
};

/** `snapshot` is the order's current state. `message` is one change of the state. */
export type Kind = 'snapshot' | 'message';

/**
 * - `connected`: the service sent something a moment ago.
 * - `late`: nothing came for 45 s, or there was no connection for 5 s, so the screen may be outdated. The client
 *   continues to try.
 * - `ended`: the order has ended, and the connection is closed. If a failed order starts again, call `follow` again.
 */
export type State = 'connected' | 'late' | 'ended';

export type Options = {
  /** The URL of the service's `/follow`, such as `https://expediter.example.com/follow`, without the token. */
  url: string;
  /**
   * Returns a follow token of the member's order, which the ordering platform signs. The client calls this function at
   * the start, and again when the service refuses the token or reports it as expired. A reconnection reuses the token.
   * If the function throws, or the new token is refused too, the client calls the function again after growing pauses.
   */
  token(): string | Promise<string>;
  /**
   * Called once for each `sequence`, in rising order. The first update is a `snapshot`. A later `snapshot` means that
   * the service no longer has all messages. An error that this function throws goes to the browser's console.
   */
  onUpdate(update: Update, kind: Kind): unknown;
  /** Called at each change of state. An error that this function throws goes to the browser's console. */
  onState(state: State): unknown;
};

/**
 * Follows one order until the order ends. After a lost connection the client waits for the time in the service's
 * `retry`, and longer after each failure, up to a minute. It connects at once when the browser is online again or the
 * page visible again. It continues after the last update, so no update is missed or repeated.
 * @returns a function that stops the client: after that there are no calls, timers or connections
 */
export function follow(options: Options): () => void;
