import { query } from '../query.ts';
import { commandsOf } from '../locations/commands.ts';
import type { DropCause, ShapeIssue } from '../wire.ts';
import { explainBy, type About, type Explanation, type Step, type Words } from './explanation.ts';
import { issueInWords } from '../../src/core/domain/issue-in-words.ts';

/** Headlines for codes of third-party providers. The provider's own sentence follows. */
export const NOT_PROVEN = 'Not authenticated';
export const NOT_READ = 'The contents cannot be read';
export const NOT_KNOWN = 'Not usable';

type SignedAtWrongTime = Extract<DropCause, { code: 'signature_too_old' | 'signature_ahead' }>;

/** Others were dropped for the same reason, so all are replayed. */
const replayAll = (about: About): Step => ({
  say: 'Then replay it, and the others that were dropped. A replay uses the current settings, and begins with a dry run.',
  link: droppedOf(about),
});
const droppedOf = ({ locationId }: About): NonNullable<Step['link']> => ({
  name: `Dropped webhooks of ${locationId}`,
  href: `/console/webhooks${query({ outcome: 'dropped', location: locationId })}`,
});
const NOT_BY_REPLAY: Step = {
  say: 'A replay does not help. Check the order at the POS, or have the POS send the webhook again.',
};

/** Corrects one setting. All others stay. */
function correct(setting: string, about: About): Step {
  return {
    say:
      `Enter ${setting} again, above the dropped webhooks of the location, or write only what changes to a file ` +
      'settings.json. All other settings stay.',
    link: droppedOf(about),
    run: commandsOf(about).changeSettings,
  };
}

const impostor = ({ locationId }: About): Step => ({
  say:
    'If neither the POS nor the settings were changed, an attacker may know the webhook address. Give ' +
    `${locationId} a new webhook token first, then revoke the old one on its page.`,
});

/** The secret's name in the settings. */
function secretOf({ webhookAuth }: About): string {
  return webhookAuth ? webhookAuth.settings.map((name) => `“${name}”`).join(' and ') : 'the secret';
}

/** The connect command, if it exchanges the secret with the POS. */
function connectStep(about: About, say: string): Step[] {
  return about.webhookAuth?.byConnect === true ? [{ say, run: commandsOf(about).connect }] : [];
}

function wrongSignature({ header }: { header: string }, about: About): Explanation {
  const { urlSetting, previousSetting } = about.webhookAuth ?? {};
  return {
    what: "The signature does not match this location's secret",
    details: [
      `It is in the header ${header}, and is checked with ${secretOf(about)}. The secret was changed on one side only, ` +
        'or was never the same.',
      ...(urlSetting === undefined
        ? []
        : [
            `This POS also signs the URL that it calls. The URL must equal ${urlSetting} in the settings, or the one made from PUBLIC_URL.`,
          ]),
    ],
    toDo: [
      ...connectStep(about, 'Fetch the current secret from the POS:'),
      correct(secretOf(about), about),
      ...(previousSetting === undefined
        ? []
        : [{ say: `During the change, the old secret can stay valid: store it as “${previousSetting}”.` }]),
      replayAll(about),
      impostor(about),
    ],
  };
}

function unsigned({ header }: { header: string }, about: About): Explanation {
  return {
    what: 'Not signed',
    details: [
      `Its header ${header} is missing. Webhooks of this location must be signed with the secret in the setting ${secretOf(about)}.`,
    ],
    toDo: [
      { say: 'Enable signing at the POS, with the same secret.' },
      ...(about.webhookAuth?.optional === true
        ? [
            {
              say:
                'If this POS cannot sign, remove the secret: press Edit on the page of the location. Then only the token ' +
                'in the address authenticates the POS.',
            },
          ]
        : []),
      impostor(about),
    ],
  };
}

function otherScheme({ header }: { header: string }, about: About): Explanation {
  return {
    what: 'The signature has an unknown format',
    details: [`Its header ${header} does not have the format that this POS documents.`],
    toDo: [
      {
        say: 'Check which signature method is selected at the POS, and whether a proxy in front of the service changes headers.',
      },
      replayAll(about),
      impostor(about),
    ],
  };
}

function noPassword({ header }: { header: string }, about: About): Explanation {
  return {
    what: 'The user name and password are missing',
    details: [`This POS does not sign. Each webhook must carry ${secretOf(about)} of the settings.`],
    toDo: [
      ...connectStep(about, 'Register the webhook at the POS again, with both:'),
      { say: `Check whether a proxy in front of the service removes the header ${header}.` },
      NOT_BY_REPLAY,
      impostor(about),
    ],
  };
}

function wrongPassword(_cause: object, about: About): Explanation {
  return {
    what: 'The user name or password is wrong',
    details: [`The POS sends other values than ${secretOf(about)} of the location's settings.`],
    toDo: [
      ...connectStep(about, 'Send the values of the settings to the POS:'),
      correct(secretOf(about), about),
      replayAll(about),
      impostor(about),
    ],
  };
}

function wrongTime({ code, header, seconds, isRight }: SignedAtWrongTime): Explanation {
  const minutes = Math.round(seconds / 60);
  const isAhead = code === 'signature_ahead';
  return {
    what: isAhead
      ? `Signed with a time more than ${minutes} minutes ahead`
      : `Signed more than ${minutes} minutes before it arrived`,
    details: [
      `The time is in its header ${header}.${isRight === true ? ' The signature is right.' : ''} An old webhook may be a copy sent by an attacker.`,
    ],
    toDo: [
      { say: 'Correct the clock of the sending machine, and synchronise it.' },
      ...(isAhead ? [] : [{ say: 'If the sender retries webhooks, it must sign each try again.' }]),
      isRight === true
        ? { say: 'If it is no copy, replay it by itself. A replay of many leaves it out.' }
        : NOT_BY_REPLAY,
    ],
  };
}

function noTime({ header }: { header: string }): Explanation {
  return {
    what: 'The time of its signature is missing',
    details: [`Its header ${header} is not a number of seconds since 1970.`],
    toDo: [{ say: 'Ask the developer of the bridge to this POS to fix it.' }, NOT_BY_REPLAY],
  };
}

function noTimeInside({ field }: { field: string }, about: About): Explanation {
  return {
    what: 'The time of its signature is missing',
    details: [`Its body has no “${field}”, which this POS always sends. Without it, the signature cannot be checked.`],
    toDo: [
      { say: 'Check its body: it may be truncated, or an attacker may have sent it.' },
      NOT_BY_REPLAY,
      impostor(about),
    ],
  };
}

function noKeyYet({ setting }: { setting: string }, about: About): Explanation {
  return {
    what: 'The signing key of the POS is not stored yet',
    details: [`The settings of the location have no ${setting}.`],
    toDo: [{ say: 'Fetch it from the POS:', run: commandsOf(about).connect }, replayAll(about)],
  };
}

function noUrl({ setting }: { setting: string }, about: About): Explanation {
  return {
    what: 'The signed address is not known',
    details: [`This POS signs the URL that it calls. The settings have no ${setting}, and PUBLIC_URL is not set.`],
    toDo: [
      { say: 'Set PUBLIC_URL of the service to the address that the POS calls. Or:' },
      correct(setting, about),
      replayAll(about),
    ],
  };
}

function notProven(_cause: object, about: About, said: string | null): Explanation {
  return {
    what: NOT_PROVEN,
    details: [`The provider of ${about.integration} reports: ${said}.`],
    toDo: [correct(secretOf(about), about), replayAll(about)],
  };
}

const CHECK_BODY: Step = {
  say: 'Reveal its body below. If the POS or a proxy now sends another format, the provider must be updated.',
};
const REPORT_IT: Step = {
  say:
    'Report the webhook id to the maintainers of the service. Remove member data before you send a body. When a new ' +
    'version can read it, replay it.',
};

function tooDeep({ limit }: { limit: number }): Explanation {
  return {
    what: 'The JSON is nested too deeply',
    details: [`At most ${limit} levels are read. A webhook of a POS has about ten.`],
    toDo: [CHECK_BODY, NOT_BY_REPLAY],
  };
}

function notText(): Explanation {
  return {
    what: 'The body is not text',
    details: ['It must be JSON in UTF-8. It may be compressed, or in another encoding.'],
    toDo: [CHECK_BODY, REPORT_IT],
  };
}

function notJson({ wanted }: { wanted: string }): Explanation {
  return {
    what: 'The body is not JSON',
    details: [`It must be ${wanted}.`],
    toDo: [
      { say: 'Check that the POS or its bridge is configured to send JSON, and that it calls the right address.' },
      CHECK_BODY,
      REPORT_IT,
    ],
  };
}

function namesNoOrder({ fields }: { fields: readonly string[] }): Explanation {
  return {
    what: 'It names no order',
    details: [`These fields are missing or empty: ${fields.join(', ')}.`],
    toDo: [{ say: 'If such webhooks are not about orders, disable them at the POS.' }, CHECK_BODY, REPORT_IT],
  };
}

function tooMany({ count, limit }: { count: number; limit: number }): Explanation {
  return {
    what: `${count} status changes: at most ${limit} are accepted`,
    toDo: [{ say: 'Configure the POS to send fewer in one webhook.' }, NOT_BY_REPLAY],
  };
}

function otherShape({ issues }: { issues: readonly ShapeIssue[] }): Explanation {
  return {
    what: 'Not in the format of this POS',
    details: issues.map((issue) => `${issueInWords(issue)}.`),
    toDo: [CHECK_BODY, REPORT_IT],
  };
}

function notRead(_cause: object, { integration }: About, said: string | null): Explanation {
  return {
    what: NOT_READ,
    details: [`The provider of ${integration} reports: ${said}.`],
    toDo: [CHECK_BODY, REPORT_IT],
  };
}

function ourMistake({ error }: { error: string }, { integration }: About): Explanation {
  return {
    what: 'The provider has a bug',
    details: [`The provider of ${integration} failed with a ${error}. The POS and the settings are not the cause.`],
    toDo: [REPORT_IT],
  };
}

function tooLarge({ limit }: { limit: number }): Explanation {
  return {
    what: 'Too large',
    details: [`It has more than ${limit.toLocaleString('en')} bytes. Only its beginning is stored.`],
    toDo: [
      { say: 'If it is genuine, raise WEBHOOK_BODY_LIMIT of the service.' },
      { say: 'It cannot be replayed. Have the POS send it again.' },
    ],
  };
}

function cannotBeStored({ sqlstate }: { sqlstate: string }): Explanation {
  return {
    what: 'A value cannot be stored',
    details: [`Postgres rejected it with the code ${sqlstate}.`],
    toDo: [CHECK_BODY, REPORT_IT],
  };
}

function tokenRevoked(_cause: object, about: About): Explanation {
  return {
    what: 'The token was no longer valid',
    details: ['It arrived while Postgres was unavailable. Its token was checked when Postgres was back.'],
    toDo: [{ say: 'If the POS still uses this token, give it a new one.' }, impostor(about)],
  };
}

function locationGone(): Explanation {
  return {
    what: 'The location was removed',
    details: ['It arrived while Postgres was unavailable, and was processed when Postgres was back.'],
    toDo: [{ say: 'If the location is still needed, configure it again and replay the webhook.' }],
  };
}

function otherIntegration({ integration: now }: { integration: string }, { integration }: About): Explanation {
  return {
    what: `The location now uses ${now}`,
    details: [
      `It arrived for ${integration} while Postgres was unavailable, and was processed when Postgres was back.`,
    ],
    toDo: [{ say: 'If the location was moved on purpose, no action is needed. Its former POS still sends webhooks.' }],
  };
}

const OLD_TOKEN: Record<Extract<DropCause, { code: 'old_token' }>['state'], string> = {
  revoked: 'was revoked',
  expired: 'had expired',
  'of another integration': 'is for this integration, but the location now has another one',
};

function oldToken({ state, tokenId }: Extract<DropCause, { code: 'old_token' }>, about: About): Explanation {
  const hasMoved = state === 'of another integration';
  return {
    what: 'Sent with an old token',
    details: [
      `It was answered with 401 and is stored for a day. Its token ${tokenId} ${OLD_TOKEN[state]}. ` +
        'The POS still uses it.',
    ],
    toDo: [
      hasMoved
        ? {
            say: 'If the location was moved on purpose, disable the webhooks at its former POS. This webhook cannot be replayed.',
          }
        : { say: 'Give the POS a new token, as part of the address that it calls.', run: commandsOf(about).connect },
      ...(hasMoved
        ? []
        : [
            {
              say: 'Then replay all with an old token.',
              link: {
                name: `Webhooks of ${about.locationId} with an old token`,
                href: `/console/webhooks${query({ outcome: 'dropped', location: about.locationId, oldToken: true })}`,
              },
            },
          ]),
      { say: 'Replay only if you are sure that the POS sent it: anyone with the old token could have.' },
    ],
  };
}

function notKnown({ webhookId }: About, reason: string | null): Explanation {
  return {
    what: NOT_KNOWN,
    details: [reason === null ? 'No reason is stored.' : `The service reports: ${reason}.`],
    toDo: [{ say: 'Show everything that is known about it:', run: `expediter webhook show ${webhookId}` }, REPORT_IT],
  };
}

const WORDS: Words<DropCause> = {
  signature_missing: unsigned,
  signature_of_other_scheme: otherScheme,
  signature_wrong: wrongSignature,
  signature_too_old: wrongTime,
  signature_ahead: wrongTime,
  signature_time_unreadable: noTime,
  signature_time_missing: noTimeInside,
  password_missing: noPassword,
  password_wrong: wrongPassword,
  key_unknown: noKeyYet,
  signed_url_unknown: noUrl,
  not_authentic: notProven,
  too_deep: tooDeep,
  not_utf8: notText,
  not_json: notJson,
  names_no_order: namesNoOrder,
  too_many_events: tooMany,
  wrong_shape: otherShape,
  unreadable: notRead,
  translator_failed: ourMistake,
  too_large: tooLarge,
  refused_by_postgres: cannotBeStored,
  token_revoked: tokenRevoked,
  no_location: locationGone,
  other_integration: otherIntegration,
  old_token: oldToken,
};

/** Explains to an operator why a webhook was dropped. */
export function explainDrop(
  dropped: { cause: { code: string } | null; reason: string | null },
  about: About,
): Explanation {
  const { cause, reason } = dropped;
  return explainBy(WORDS, cause, about, reason) ?? notKnown(about, reason);
}
