/** Where the pages of the console are: every link to one, with what it names percent-encoded. */
export const pageOf = {
  order: (serviceOrderId: string): string => `/console/orders/${encodeURIComponent(serviceOrderId)}`,
  webhook: (webhookId: string): string => `/console/webhooks/${encodeURIComponent(webhookId)}`,
  location: (locationId: string): string => `/console/locations/${encodeURIComponent(locationId)}`,
};
