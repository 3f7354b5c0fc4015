/** Paths of the console's pages, with percent-encoded ids. */
export const pageOf = {
  order: (serviceOrderId: string): string => `/console/orders/${encodeURIComponent(serviceOrderId)}`,
  webhook: (webhookId: string): string => `/console/webhooks/${encodeURIComponent(webhookId)}`,
  location: (locationId: string): string => `/console/locations/${encodeURIComponent(locationId)}`,
};
