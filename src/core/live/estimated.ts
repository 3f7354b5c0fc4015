/** SQL of when the food of an order `o` is ready, and when it is with the member, as its POS said last. */
export const ESTIMATED = { ready: 'o.estimate[2]', delivery: 'o.estimate[3]' };

/** The same as a member is told it, of an order that goes on. */
export const TOLD_ESTIMATES = {
  estimatedReadyAt: `CASE WHEN o.ended_at IS NULL THEN ${ESTIMATED.ready} END`,
  estimatedDeliveryAt: `CASE WHEN o.ended_at IS NULL THEN ${ESTIMATED.delivery} END`,
};

/** SQL of the one that the order is due by. */
export const ESTIMATED_AT = `CASE o.fulfillment WHEN 'delivery' THEN ${ESTIMATED.delivery} ELSE ${ESTIMATED.ready} END`;
