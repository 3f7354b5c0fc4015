/** The same database, as the role that the service runs as: it owns nothing, and has what `migrate` gives it. */
export function asService(ownerUrl: string): string {
  return Object.assign(new URL(ownerUrl), { username: 'expediter' }).href;
}
