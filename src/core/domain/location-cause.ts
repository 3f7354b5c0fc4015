import { z } from 'zod';
import { CauseText } from './cause-text.ts';
import { ShapeIssue } from './shape-issues.ts';

/** Causes why a location cannot be used. A closed list: a code never changes its details or its meaning. */
export const LocationCause = z.discriminatedUnion('code', [
  z.object({ code: z.literal('no_location') }),
  /** No key of SETTINGS_KEY decrypts the settings. `keyId` is the id of the key that they need. */
  z.object({ code: z.literal('settings_sealed'), keyId: CauseText }),
  /** The settings were encrypted for another location, then moved or copied here by hand. */
  z.object({ code: z.literal('settings_of_another') }),
  z.object({ code: z.literal('unknown_integration'), integration: CauseText }),
  z.object({ code: z.literal('wrong_settings'), issues: z.array(ShapeIssue) }),
  z.object({ code: z.literal('no_public_url') }),
]);
export type LocationCause = z.infer<typeof LocationCause>;
