import type { Location } from '../core/locations/locations.ts';
import { pageFor } from './page-for.ts';
import type { Exchange } from './watch-fetch.ts';

/** Says what to do about an answer that does not take an order. Only of a POS that is built for us can more be told. */
export function remedyOfAnswer({ exchange }: { exchange: Exchange | undefined }, location: Location): string {
  const page = pageFor(location, 'orders');
  if (location.provider.builtForUs === undefined || exchange === undefined)
    return `see what each answer means: ${page}`;
  const { status } = exchange;
  if (status === undefined) return `answer first, print then: ${page}`;
  if (status === 401 || status === 403) {
    return (
      'your check of our signature refused it: the key is the base64 behind whsec_, decoded; sign the raw bytes: ' +
      pageFor(location, 'the-signature')
    );
  }
  if (status === 404 || status === 405) {
    return `see the path of ordersUrl, which is --orders-url of npm run certify: ${page}`;
  }
  if (status >= 500) return `your bridge broke on this order: see its log. ${page}`;
  return `see what each answer means: ${page}`;
}
