import { z } from 'zod';
import { CauseText } from './cause-text.ts';
import { ShapeIssue } from './shape-issues.ts';

/** Why a location cannot be used as it is. A closed list: a code keeps its details, and another meaning is another code. */
export const LocationCause = z.discriminatedUnion('code', [
  z.object({ code: z.literal('no_location') }),
  /** None of SETTINGS_KEY opens them; `keyId` is the one that they name. */
  z.object({ code: z.literal('settings_sealed'), keyId: CauseText }),
  z.object({ code: z.literal('unknown_integration'), integration: CauseText }),
  z.object({ code: z.literal('wrong_settings'), issues: z.array(ShapeIssue) }),
  z.object({ code: z.literal('no_public_url') }),
]);
export type LocationCause = z.infer<typeof LocationCause>;
