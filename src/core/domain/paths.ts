/** The path of the webhook endpoint. A POS calls `/{integration}/{locationId}` below it. */
export const WEBHOOK_PATH = '/webhook';

/** The path of the endpoint to which Pub/Sub pushes signals. */
export const PUSH_PATH = '/pubsub/push';

/** The path of the endpoint to which a platform without Pub/Sub sends signals. */
export const SIGNAL_PATH = '/signal';

/** The URL that a POS calls. `base` is the public base URL. */
export function webhookUrl(base: string, about: { integration: string; locationId: string; token: string }): string {
  return `${base}${webhookPath(about)}?token=${about.token}`;
}

export function webhookPath({ integration, locationId }: { integration: string; locationId: string }): string {
  return `${WEBHOOK_PATH}/${encodeURIComponent(integration)}/${encodeURIComponent(locationId)}`;
}
