/** Makes a webhook of the `standard` integration. */
export function statusWebhook(order: {
  serviceOrderId?: string;
  providerOrderId?: string;
  status: string;
  reason?: string;
  trackingUrl?: string;
  estimatedReadyAt?: string;
}): object {
  return {
    eventType: 'order.status',
    order: {
      ...(order.serviceOrderId !== undefined && { thirdPartyReference: order.serviceOrderId }),
      ...(order.providerOrderId !== undefined && { id: order.providerOrderId }),
      status: order.status,
      ...(order.reason !== undefined && { reason: order.reason }),
      ...(order.estimatedReadyAt !== undefined && { estimatedReadyAt: order.estimatedReadyAt }),
      ...(order.trackingUrl !== undefined && { trackingUrl: order.trackingUrl }),
    },
  };
}
