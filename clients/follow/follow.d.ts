/** Where an order is, as a member may know it. Fields may be added. */
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
  /** What the staff call out. */
  callOutCode?: string;
  /** Whether it is to be cancelled: not yet said by the restaurant, or made all the same. */
  cancellation?: 'requested' | 'refused';
  /** When the member wants it, as an ISO 8601 instant; missing for as soon as possible. */
  requestedAt?: string;
  /** Why it failed or was cancelled, fit for the member. */
  reason?: string;
  /** The same for programs: one of a closed list, which `docs/order-life.md` explains. */
  reasonCode?: string;
  /** The items that the restaurant names as the reason, by the platform's ids. */
  itemIds?: string[];
  /** When it will be ready, and when it will be with the member, as the restaurant says now. */
  estimatedReadyAt?: string;
  estimatedDeliveryAt?: string;
  /** Where the courier is followed: an https: URL. */
  trackingUrl?: string;
  /** In a message: when it happened, by the POS's clock. */
  occurredAt?: string;
  /** When the service applied it. */
  appliedAt?: string;
};

/** `snapshot` is where the order is now, `message` one step of it. */
export type Kind = 'snapshot' | 'message';

/**
 * - `connected`: the service was heard a moment ago; what is on the screen is what it knows.
 * - `late`: nothing was heard for 45 s, or no connection was had for 5 s. What is on the screen may be old. It goes on to
 *   try, and says `connected` when it is back.
 * - `ended`: the order is over. Nothing follows, and nothing is open any more. Should one that failed begin anew, follow it
 *   anew.
 */
export type State = 'connected' | 'late' | 'ended';

export type Options = {
  /** The service's `/follow`, such as `https://expediter.example.com/follow`. The token is no part of it. */
  url: string;
  /**
   * Returns a follow token of the member's order, which the ordering platform signs. It is asked first, and again once the
   * service says that the token has expired or refuses it; a reconnection takes the one it has. If it throws, or its token
   * is refused again, it is asked later, after ever longer pauses.
   */
  token(): string | Promise<string>;
  /**
   * Told each sequence once, in order. A `snapshot` comes first, and later only where the service does not have all
   * messages any more. What it throws goes to the browser's console.
   */
  onUpdate(update: Update, kind: Kind): unknown;
  /** Told each change, and nothing before the first one. What it throws goes to the browser's console. */
  onState(state: State): unknown;
};

/**
 * Follows one order until it ends. A cut connection is opened again a moment later, as the service wishes it (`retry`),
 * or after ever longer pauses up to a minute while there is none to be had; at once when the browser is online or the page
 * is looked at again. It goes on behind the last update that was told, so none is missed and none comes twice.
 * @returns a function that stops it: nothing is told after that, and no timer and no connection is left
 */
export function follow(options: Options): () => void;
