import type { Location } from '../core/locations/locations.ts';

/** Where it stands what a POS has to do. @param section of the page for those that are built for us */
export function pageFor(
  { integration, provider }: Pick<Location, 'integration' | 'provider'>,
  section: 'orders' | 'statuses' | 'the-signature',
): string {
  return provider.builtForUs === undefined ? `docs/providers/${integration}.md` : `docs/connect-your-pos.md#${section}`;
}
