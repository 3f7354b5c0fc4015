/** The path of the return door. A POS calls `/{integration}/{locationId}` below it. */
export const WEBHOOK_PATH = '/webhook';

/** The URL that a POS calls. `base` is the outside base URL. */
export function webhookUrl(base: string, about: { integration: string; locationId: string; token: string }): string {
  return `${base}${webhookPath(about)}?token=${about.token}`;
}

export function webhookPath({ integration, locationId }: { integration: string; locationId: string }): string {
  return `${WEBHOOK_PATH}/${encodeURIComponent(integration)}/${encodeURIComponent(locationId)}`;
}
