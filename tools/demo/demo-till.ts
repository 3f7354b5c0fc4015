import type { Provider } from '../../src/core/domain/provider.ts';
import { newSettingsOf } from '../../src/core/locations/locations.ts';
import { standard } from '../../src/providers/standard/index.ts';

/** A POS that may make a ticket of every request and cannot be asked about one. A module for `PROVIDER_MODULES`. */
const settings = newSettingsOf(standard).meta({ title: 'Demo till', description: 'A till that cannot be asked.' });
const till: Provider = { ...standard, integration: 'demo-till', settings, newSettings: settings, deduplicates: false };

export default till;
