import type { Provider } from '../../src/core/domain/provider.ts';
import { standard } from '../../src/providers/standard/index.ts';

/** A POS that may make a ticket of every request and cannot be asked about one. A module for `PROVIDER_MODULES`. */
const till: Provider = { ...standard, integration: 'demo-till', deduplicates: false };

export default till;
