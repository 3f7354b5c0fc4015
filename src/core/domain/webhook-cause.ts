import { z } from 'zod';
import { CauseText } from './cause-text.ts';
import { LocationCause } from './location-cause.ts';
import { ShapeIssue } from './shape-issues.ts';

const Count = z.int().nonnegative();

/** Why a token that was once valid is not valid now. */
export const OLD_TOKEN_STATES = ['expired', 'revoked', 'of another integration'] as const;
export type OldTokenState = (typeof OLD_TOKEN_STATES)[number];

/**
 * Causes why a webhook is dropped. A closed list: a code never changes its details or its meaning. Details name headers,
 * settings, fields, kinds and limits, never a value of the webhook or of the settings.
 */
export const DropCause = z
  .discriminatedUnion('code', [
    // Nothing proves that the sender is the POS.
    z.object({ code: z.literal('signature_missing'), header: CauseText }),
    /** Signed in another way than the POS documents. */
    z.object({ code: z.literal('signature_of_other_scheme'), header: CauseText }),
    z.object({ code: z.literal('signature_wrong'), header: CauseText }),
    z.object({ code: z.literal('signature_too_old'), header: CauseText, seconds: Count }),
    z.object({ code: z.literal('signature_ahead'), header: CauseText, seconds: Count }),
    z.object({ code: z.literal('signature_time_unreadable'), header: CauseText }),
    /** The signed time is in the body, in `field`. */
    z.object({ code: z.literal('signature_time_missing'), field: CauseText }),
    z.object({ code: z.literal('password_missing'), header: CauseText }),
    z.object({ code: z.literal('password_wrong'), header: CauseText }),
    z.object({ code: z.literal('key_unknown'), setting: CauseText }),
    /** The signature covers a URL that neither `setting` nor PUBLIC_URL gives. */
    z.object({ code: z.literal('signed_url_unknown'), setting: CauseText }),
    /** The details are only in the provider's own sentence. */
    z.object({ code: z.literal('not_authentic') }),

    // The webhook cannot be read.
    z.object({ code: z.literal('too_deep'), limit: Count }),
    z.object({ code: z.literal('not_utf8') }),
    z.object({ code: z.literal('not_json'), wanted: CauseText }),
    z.object({ code: z.literal('names_no_order'), fields: z.array(CauseText) }),
    z.object({ code: z.literal('too_many_events'), count: Count, limit: Count }),
    z.object({ code: z.literal('wrong_shape'), issues: z.array(ShapeIssue) }),
    /** The details are only in the provider's own sentence. */
    z.object({ code: z.literal('unreadable') }),

    // The webhook cannot be used.
    z.object({ code: z.literal('translator_failed'), error: CauseText }),
    z.object({ code: z.literal('too_large'), limit: Count }),
    z.object({ code: z.literal('refused_by_postgres'), sqlstate: CauseText }),

    // The webhook waited in the spill, and was checked when Postgres was back.
    /** Revoked or expired. */
    z.object({ code: z.literal('token_revoked') }),
    /** The location was removed meanwhile. */
    z.object({ code: z.literal('no_location') }),
    /** `integration` serves the location now. */
    z.object({ code: z.literal('other_integration'), integration: CauseText }),

    // The webhook was answered 401.
    /** Its token was once valid for this location and integration. */
    z.object({ code: z.literal('old_token'), state: z.enum(OLD_TOKEN_STATES), tokenId: CauseText }),
  ])
  .meta({ description: 'Why a webhook is dropped.' });
export type DropCause = z.infer<typeof DropCause>;

/** A stored cause. A newer version may have stored a code that this version does not know. */
export const StoredDropCause = z.union([DropCause, z.looseObject({ code: z.string() })]);

export const DROP_CODES: readonly DropCause['code'][] = DropCause.options.map((option) => option.shape.code.value);

/** Causes why a webhook is not replayed. This list is closed too. */
export const ReplayCause = z
  .discriminatedUnion('code', [
    /** Its body was over WEBHOOK_BODY_LIMIT. */
    z.object({ code: z.literal('only_beginning_stored') }),
    z.object({ code: z.literal('erased') }),
    /** It is a dropped replay, which has no contents, and the original webhook is deleted. */
    z.object({ code: z.literal('not_stored') }),
    /** `integration` serves the location now. */
    z.object({ code: z.literal('other_integration'), integration: CauseText }),
    /** No key of SETTINGS_KEY decrypts its encrypted part. `keyId` is the id of the key that it needs. */
    z.object({ code: z.literal('credentials_sealed'), keyId: CauseText }),
    /** Its encrypted part was encrypted for another webhook, then moved or copied here by hand. */
    z.object({ code: z.literal('sealed_for_another') }),
    z.object({ code: z.literal('postgres_gave_up'), sqlstate: CauseText }),
    ...LocationCause.options,
  ])
  .meta({ description: 'Why a webhook is not replayed.' });
export type ReplayCause = z.infer<typeof ReplayCause>;

export const REPLAY_CODES: readonly ReplayCause['code'][] = ReplayCause.options.map(
  (option) => option.shape.code.value,
);
