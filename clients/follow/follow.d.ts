/** An order's state, as a member may see it. Fields may be added. */
export type Update = {
  /** Rises with each update. 0 while the service has not read the order yet. */
  sequence: number;
  /** What the POS reported. Null before it reported anything. */
  status: 'received' | 'in_progress' | 'ready' | 'en_route' | 'completed' | 'failed' | 'cancelled' | null;
  /** What to show. */
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
  /** A cancel that is requested: the restaurant has not answered yet, or made the order anyway. */
  cancellation?: 'requested' | 'refused';
  /** When the member wants the order, as an ISO 8601 instant. Missing for as soon as possible. */
  requestedAt?: string;
  /** Why the order failed or was cancelled, in words for the member. */
  reason?: string;
  /** The same for programs: one of a closed list, which `docs/order-life.md` explains. */
  reasonCode?: string;
  /** The items that the restaurant gives as the reason, by the platform's ids. */
  itemIds?: string[];
  /** The restaurant's current estimates: when the order is ready, and when it is with the member. */
  estimatedReadyAt?: string;
  estimatedDeliveryAt?: string;
  /** The courier's tracking page: an https: URL. */
  trackingUrl?: string;
  /** Only in a message: when it happened, by the POS's clock. */
  occurredAt?: string;
  /** When the service applied it. */
  appliedAt?: string;
};

/** `snapshot` is the order's current state, `message` one change of it. */
export type Kind = 'snapshot' | 'message';

/**
 * - `connected`: the service sent something a moment ago.
 * - `late`: nothing came for 45 s, or there was no connection for 5 s: the screen may be old. The client keeps
 *   trying.
 * - `ended`: the order is over, and nothing is open. If a failed order starts again, call `follow` again.
 */
export type State = 'connected' | 'late' | 'ended';

export type Options = {
  /** The service's `/follow`, such as `https://expediter.example.com/follow`, without the token. */
  url: string;
  /**
   * Returns a follow token of the member's order, which the ordering platform signs. The client calls it first, and
   * again when the service reports the token as expired or refuses it; a reconnection reuses the token. If it throws,
   * or the new token is refused too, the client calls it again after growing pauses.
   */
  token(): string | Promise<string>;
  /**
   * Called once for each sequence, in order. A `snapshot` comes first, and later only if the service no longer has all
   * messages. An error that it throws goes to the browser's console.
   */
  onUpdate(update: Update, kind: Kind): unknown;
  /** Called at each change of state. An error that it throws goes to the browser's console. */
  onState(state: State): unknown;
};

/**
 * Follows one order until it ends. It reopens a cut connection after the service's `retry`, or after growing pauses up
 * to a minute while there is no connection, or at once when the browser is online or the page visible again. It
 * continues after the last update, so none is missed or repeated.
 * @returns a function that stops it: no further call, timer or connection remains
 */
export function follow(options: Options): () => void;
