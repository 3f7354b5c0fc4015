import { z } from 'zod';
import { CauseText } from './cause-text.ts';
import { LocationCause } from './location-cause.ts';
import { ShapeIssue } from './shape-issues.ts';

const Count = z.int().nonnegative();

/**
 * Why a webhook is dropped. A closed list: a code keeps its details, and another meaning is another code. Details name
 * headers, settings, fields, kinds and limits, never a value of the webhook or of the settings.
 */
export const DropCause = z
  .discriminatedUnion('code', [
    // It does not prove that the POS sent it.
    z.object({ code: z.literal('signature_missing'), header: CauseText }),
    /** Signed in another way than the POS documents. */
    z.object({ code: z.literal('signature_of_other_scheme'), header: CauseText }),
    z.object({ code: z.literal('signature_wrong'), header: CauseText }),
    z.object({ code: z.literal('signature_too_old'), header: CauseText, seconds: Count }),
    z.object({ code: z.literal('signature_ahead'), header: CauseText, seconds: Count }),
    z.object({ code: z.literal('signature_time_unreadable'), header: CauseText }),
    /** The time that is signed stands in the body, in `field`. */
    z.object({ code: z.literal('signature_time_missing'), field: CauseText }),
    z.object({ code: z.literal('password_missing'), header: CauseText }),
    z.object({ code: z.literal('password_wrong'), header: CauseText }),
    z.object({ code: z.literal('key_unknown'), setting: CauseText }),
    /** The signature covers a URL, and neither `setting` nor PUBLIC_URL says which. */
    z.object({ code: z.literal('signed_url_unknown'), setting: CauseText }),
    /** In a provider's own words alone. */
    z.object({ code: z.literal('not_authentic') }),

    // It cannot be read.
    z.object({ code: z.literal('too_deep'), limit: Count }),
    z.object({ code: z.literal('not_utf8') }),
    z.object({ code: z.literal('not_json'), wanted: CauseText }),
    z.object({ code: z.literal('names_no_order'), fields: z.array(CauseText) }),
    z.object({ code: z.literal('too_many_events'), count: Count, limit: Count }),
    z.object({ code: z.literal('wrong_shape'), issues: z.array(ShapeIssue) }),
    /** In a provider's own words alone. */
    z.object({ code: z.literal('unreadable') }),

    // It cannot be used.
    z.object({ code: z.literal('translator_failed'), error: CauseText }),
    z.object({ code: z.literal('too_large'), limit: Count }),
    z.object({ code: z.literal('refused_by_postgres'), sqlstate: CauseText }),
  ])
  .meta({ id: 'DropCause', description: 'Why a webhook is dropped.' });
export type DropCause = z.infer<typeof DropCause>;

/** As it is kept: a newer version may have written one that this one does not know. */
export const StoredDropCause = z.union([DropCause, z.looseObject({ code: z.string() })]);

/** Every code that a drop may have. */
export const DROP_CODES: readonly DropCause['code'][] = DropCause.options.map((option) => option.shape.code.value);

/** Why a webhook is not replayed. A closed list as well. */
export const ReplayCause = z
  .discriminatedUnion('code', [
    /** It was over WEBHOOK_BODY_LIMIT. */
    z.object({ code: z.literal('only_beginning_kept') }),
    z.object({ code: z.literal('erased') }),
    /** A replay that was dropped keeps no contents, and the webhook that does is gone. */
    z.object({ code: z.literal('not_kept') }),
    /** `integration` serves the location now. */
    z.object({ code: z.literal('other_integration'), integration: CauseText }),
    z.object({ code: z.literal('credentials_sealed'), keyId: CauseText }),
    z.object({ code: z.literal('postgres_gave_up'), sqlstate: CauseText }),
    ...LocationCause.options,
  ])
  .meta({ id: 'ReplayCause', description: 'Why a webhook is not replayed.' });
export type ReplayCause = z.infer<typeof ReplayCause>;

/** Every code that the refusal of a replay may have. */
export const REPLAY_CODES: readonly ReplayCause['code'][] = ReplayCause.options.map(
  (option) => option.shape.code.value,
);
