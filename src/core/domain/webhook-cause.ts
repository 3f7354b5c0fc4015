import { z } from 'zod';
import { CauseText } from './cause-text.ts';
import { LocationCause } from './location-cause.ts';
import { ShapeIssue } from './shape-issues.ts';

const Count = z.int().nonnegative();
/** Set if the signature was right: then only the time is wrong. */
const IsRight = z.literal(true).optional();

/** Why a token that was once valid is not valid now. */
export const OLD_TOKEN_STATES = ['expired', 'revoked', 'of another integration'] as const;
export type OldTokenState = (typeof OLD_TOKEN_STATES)[number];

/** Makes one code of a closed list. The description adds what the code's name does not say. */
const cause = <const Code extends string, Details extends z.ZodRawShape>(
  code: Code,
  description: string,
  details: Details,
) => z.object({ code: z.literal(code), ...details }).meta({ description });

/**
 * Causes why a webhook is dropped. A closed list: a code never changes its details or its meaning. Details name headers,
 * settings, fields, kinds and limits, never a value of the webhook or of the settings.
 */
export const DropCause = z
  .discriminatedUnion('code', [
    // Nothing proves that the sender is the POS.
    cause('signature_missing', 'the header is missing', { header: CauseText }),
    cause('signature_of_other_scheme', 'not the scheme that the POS documents', { header: CauseText }),
    cause('signature_wrong', 'does not match body and secret', { header: CauseText }),
    cause('signature_too_old', 'signed too long ago', { header: CauseText, seconds: Count, isRight: IsRight }),
    cause('signature_ahead', 'signed in the future', { header: CauseText, seconds: Count, isRight: IsRight }),
    cause('signature_time_unreadable', 'its time cannot be read', { header: CauseText }),
    cause('signature_time_missing', 'the body lacks the time', { field: CauseText }),
    cause('password_missing', 'the header is missing', { header: CauseText }),
    cause('password_wrong', 'not the one of the settings', { header: CauseText }),
    cause('key_unknown', 'the settings lack the key', { setting: CauseText }),
    cause('signed_url_unknown', 'neither the setting nor PUBLIC_URL gives the URL', { setting: CauseText }),
    cause('not_authentic', 'the reason says why', {}),

    // The webhook cannot be read.
    cause('too_deep', 'the JSON is nested too deeply', { limit: Count }),
    cause('not_utf8', 'the body is not UTF-8', {}),
    cause('not_json', 'the body is not JSON', { wanted: CauseText }),
    cause('names_no_order', 'the fields for its id are empty', { fields: z.array(CauseText) }),
    cause('too_many_events', 'over the limit for one webhook', { count: Count, limit: Count }),
    cause('wrong_shape', 'fields are missing or of another kind', { issues: z.array(ShapeIssue) }),
    cause('unreadable', 'the reason says why', {}),

    // The webhook cannot be used.
    cause('translator_failed', 'a bug in the provider', { error: CauseText }),
    cause('too_large', 'over WEBHOOK_BODY_LIMIT', { limit: Count }),
    cause('refused_by_postgres', 'Postgres cannot store it', { sqlstate: CauseText }),

    // The webhook waited in the spill, and was checked once Postgres was back.
    cause('token_revoked', 'spilled, and its token was already revoked or expired', {}),
    cause('no_location', 'spilled, and its location was removed meanwhile', {}),
    cause('other_integration', 'spilled, and the location has another integration now', { integration: CauseText }),

    // The webhook was answered 401.
    cause('old_token', 'its token was once valid for this location and integration', {
      state: z.enum(OLD_TOKEN_STATES),
      tokenId: CauseText,
    }),
  ])
  .meta({ description: 'Why a webhook is dropped.' });
export type DropCause = z.infer<typeof DropCause>;

/** A stored cause. A newer version may have stored a code that this version does not know. */
export const StoredDropCause = z.union([DropCause, z.looseObject({ code: z.string() })]);

export const DROP_CODES: readonly DropCause['code'][] = DropCause.options.map((option) => option.shape.code.value);

/** Causes why a webhook is not replayed. This list is closed too. */
export const ReplayCause = z
  .discriminatedUnion('code', [
    cause('only_beginning_stored', 'over WEBHOOK_BODY_LIMIT or the daily quota', {}),
    cause('erased', "erased with the member's data", {}),
    cause('not_stored', 'a dropped replay whose original is deleted', {}),
    cause('other_integration', 'the location has another integration now', { integration: CauseText }),
    cause('credentials_sealed', 'no key of SETTINGS_KEY decrypts it', { keyId: CauseText }),
    cause('sealed_for_another', 'copied by hand from another webhook', {}),
    cause('postgres_gave_up', 'Postgres could not process it: try again', { sqlstate: CauseText }),
    ...LocationCause.options,
  ])
  .meta({ description: 'Why a webhook is not replayed.' });
export type ReplayCause = z.infer<typeof ReplayCause>;
