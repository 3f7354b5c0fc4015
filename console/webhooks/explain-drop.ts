import { commandsOf } from '../locations/commands.ts';
import type { DropCause, ShapeIssue } from '../wire.ts';
import { explainBy, type About, type Explanation, type Step, type Words } from './explanation.ts';
import { issueInWords } from '../../src/core/domain/issue-in-words.ts';

/** Headlines for codes of other people's providers, whose own sentence is all there is. */
export const NOT_PROVEN = 'It does not prove that the POS sent it';
export const NOT_READ = 'What it says cannot be read';
export const NOT_KNOWN = 'It could not be used';

type SignedAtWrongTime = Extract<DropCause, { code: 'signature_too_old' | 'signature_ahead' }>;

const TRY_DRY: Step = {
  say: 'Then replay it: the dry run says first whether it is enough. It is verified with the settings of that moment.',
};
const NOT_BY_REPLAY: Step = {
  say: 'No replay changes this. Ask for the order at the POS, or have the POS send it again.',
};

function putSettings(about: About): Step[] {
  const { show, putSettings } = commandsOf(about);
  return [
    { say: 'See which settings the location has. Their values are never shown.', run: show },
    {
      say:
        'Put the right ones into a file settings.json and store them. All of them: what the location had before is ' +
        'replaced.',
      run: putSettings,
    },
  ];
}

const impostor = ({ locationId }: About): Step => ({
  say:
    `If nobody changed anything at either side, somebody else may know the address: give ${locationId} a new webhook ` +
    'token, and revoke the old one on the page of the location.',
});

/** The secret's name in the settings. */
function secretOf({ webhookAuth }: About): string {
  return webhookAuth ? webhookAuth.settings.map((name) => `“${name}”`).join(' and ') : 'the secret';
}

/** The connect command, if it exchanges the secret with the POS. */
function connectsItself(about: About, say: string): Step[] {
  return about.webhookAuth?.byConnect === true ? [{ say, run: commandsOf(about).connect }] : [];
}

function wrongSignature({ header }: { header: string }, about: About): Explanation {
  const { urlSetting, previousSetting } = about.webhookAuth ?? {};
  return {
    what: 'It is signed with another secret than ours',
    details: [
      `Its header ${header} does not fit ${secretOf(about)} of the location's settings: the secret was changed ` +
        'at one side alone, or never was the same.',
      ...(urlSetting === undefined
        ? []
        : [
            `This POS signs the URL it calls as well: it has to be the ${urlSetting} of the settings, or ours by PUBLIC_URL.`,
          ]),
    ],
    toDo: [
      ...connectsItself(about, 'Let the POS say what it signs with:'),
      { say: `Compare the secret at the POS with the one that you stored as ${secretOf(about)}.` },
      ...putSettings(about),
      ...(previousSetting === undefined
        ? []
        : [
            { say: `While the POS changes over, the old secret may stay beside the new one, as “${previousSetting}”.` },
          ]),
      TRY_DRY,
      impostor(about),
    ],
  };
}

function unsigned({ header }: { header: string }, about: About): Explanation {
  return {
    what: 'It is not signed',
    details: [
      `Its header ${header} is missing. Webhooks of this location have to be signed with the secret that its settings call ${secretOf(about)}.`,
    ],
    toDo: [
      { say: 'Switch signing on at the POS, with the same secret.' },
      ...(about.webhookAuth?.optional === true
        ? [
            {
              say:
                'If this POS cannot sign, store the settings without a secret, from a file settings.json: the token in the ' +
                'address alone then says who sent it.',
              run: commandsOf(about).putSettings,
            },
          ]
        : []),
      impostor(about),
    ],
  };
}

function otherScheme({ header }: { header: string }, about: About): Explanation {
  return {
    what: 'It is signed in another way than we know',
    details: [`Its header ${header} does not look as this POS documents it.`],
    toDo: [
      { say: 'See at the POS which way of signing is chosen, and whether a proxy before us changes headers.' },
      TRY_DRY,
      impostor(about),
    ],
  };
}

function noPassword({ header }: { header: string }, about: About): Explanation {
  return {
    what: 'It came without a user name and a password',
    details: [`This POS signs nothing: ${secretOf(about)} of the settings have to come with each webhook.`],
    toDo: [
      ...connectsItself(about, 'Register the webhook at the POS anew, with both:'),
      { say: `See whether a proxy before us takes the header ${header} away.` },
      NOT_BY_REPLAY,
      impostor(about),
    ],
  };
}

function wrongPassword(_cause: object, about: About): Explanation {
  return {
    what: 'Its user name or password is not ours',
    details: [`The POS sends others than ${secretOf(about)} of the location's settings.`],
    toDo: [
      ...connectsItself(about, 'Give the POS those of the settings:'),
      { say: 'Or store the settings with those that the POS has:' },
      ...putSettings(about),
      TRY_DRY,
      impostor(about),
    ],
  };
}

function wrongTime({ code, header, seconds }: SignedAtWrongTime): Explanation {
  const minutes = Math.round(seconds / 60);
  const isAhead = code === 'signature_ahead';
  return {
    what: isAhead
      ? `It says that it was signed more than ${minutes} minutes after it came`
      : `It was signed more than ${minutes} minutes before it came`,
    details: [`So says its header ${header}. An old one may be a copy that somebody sends again.`],
    toDo: [
      { say: 'Set the clock of the machine that sends it, and see that it stays right.' },
      ...(isAhead
        ? []
        : [{ say: 'If the sender repeats what it could not send before, it has to sign each try anew.' }]),
      NOT_BY_REPLAY,
    ],
  };
}

function noTime({ header }: { header: string }): Explanation {
  return {
    what: 'It does not say when it was signed',
    details: [`Its header ${header} should be a count of seconds since 1970, and is something else.`],
    toDo: [{ say: 'Whoever makes the bridge to this POS has to mend it.' }, NOT_BY_REPLAY],
  };
}

function noTimeInside({ field }: { field: string }, about: About): Explanation {
  return {
    what: 'It does not say when it was signed',
    details: [`Its body has no “${field}”, without which its signature cannot be checked: this POS always sends one.`],
    toDo: [
      { say: 'Look at its body: somebody else than the POS may have sent it, or something on the way has cut it off.' },
      NOT_BY_REPLAY,
      impostor(about),
    ],
  };
}

function noKeyYet({ setting }: { setting: string }, about: About): Explanation {
  return {
    what: 'We do not know yet what the POS signs with',
    details: [`The settings of the location have no ${setting}.`],
    toDo: [{ say: 'Fetch it from the POS:', run: commandsOf(about).connect }, TRY_DRY],
  };
}

function noUrl({ setting }: { setting: string }, about: About): Explanation {
  return {
    what: 'We do not know which address the signature covers',
    details: [`This POS signs the URL it calls. The settings have no ${setting}, and the service no PUBLIC_URL.`],
    toDo: [
      { say: `Set PUBLIC_URL for the service, to the address that the POS calls; or store ${setting}:` },
      ...putSettings(about),
      TRY_DRY,
    ],
  };
}

function notProven(_cause: object, about: About, said: string | null): Explanation {
  return {
    what: NOT_PROVEN,
    details: [`What verifies webhooks of ${about.integration} says: ${said}.`],
    toDo: [
      { say: 'Compare what the POS signs with and the settings of the location.' },
      ...putSettings(about),
      TRY_DRY,
    ],
  };
}

const lookAtIt: Step = {
  say: 'Look at its body below. If the POS, or what is between it and us, sends something new, the provider has to learn it.',
};
const TELL_US: Step = {
  say:
    'Report it to whoever maintains the service, with the id of the webhook; a body only without what tells of the ' +
    'member. Once a new version reads it, replay it.',
};

function tooDeep({ limit }: { limit: number }): Explanation {
  return {
    what: 'Its JSON is nested too deep to be a webhook',
    details: [`At most ${limit} levels are read; those of a POS have some ten.`],
    toDo: [lookAtIt, NOT_BY_REPLAY],
  };
}

function notText(): Explanation {
  return {
    what: 'Its body is no text',
    details: ['It should be JSON in UTF-8. It may be compressed, or in another encoding.'],
    toDo: [lookAtIt, TELL_US],
  };
}

function notJson({ wanted }: { wanted: string }): Explanation {
  return {
    what: 'Its body is not JSON',
    details: [`It should be ${wanted}.`],
    toDo: [
      { say: 'See whether the POS, or the bridge to it, is set to send JSON, and whether the address belongs to it.' },
      lookAtIt,
      TELL_US,
    ],
  };
}

function namesNoOrder({ fields }: { fields: readonly string[] }): Explanation {
  return {
    what: 'It does not say which order it is about',
    details: [`Nothing is in ${fields.join(', nor in ')}.`],
    toDo: [
      { say: 'If the POS sends such webhooks about something else than orders, it can be told not to.' },
      lookAtIt,
      TELL_US,
    ],
  };
}

function tooMany({ count, limit }: { count: number; limit: number }): Explanation {
  return {
    what: `It reports ${count} changes at once, and at most ${limit} are taken`,
    toDo: [{ say: 'Have the POS send fewer in one webhook.' }, NOT_BY_REPLAY],
  };
}

function otherShape({ issues }: { issues: readonly ShapeIssue[] }): Explanation {
  return {
    what: 'It is not what this POS usually sends',
    details: issues.map((issue) => `${issueInWords(issue)}.`),
    toDo: [lookAtIt, TELL_US],
  };
}

function notRead(_cause: object, { integration }: About, said: string | null): Explanation {
  return {
    what: NOT_READ,
    details: [`What reads webhooks of ${integration} says: ${said}.`],
    toDo: [lookAtIt, TELL_US],
  };
}

function ourMistake({ error }: { error: string }, { integration }: About): Explanation {
  return {
    what: 'What reads it has a mistake',
    details: [`The provider of ${integration} failed with a ${error}. Neither the POS nor the settings are to blame.`],
    toDo: [TELL_US],
  };
}

function tooLarge({ limit }: { limit: number }): Explanation {
  return {
    what: 'It is too large',
    details: [`It is over ${limit.toLocaleString('en')} bytes, and only its beginning is kept.`],
    toDo: [
      { say: 'If it is a real one, raise WEBHOOK_BODY_LIMIT of the service.' },
      { say: 'It cannot be replayed: have the POS send it again.' },
    ],
  };
}

function cannotBeStored({ sqlstate }: { sqlstate: string }): Explanation {
  return {
    what: 'It holds something that cannot be stored',
    details: [`Postgres refused it with the code ${sqlstate}.`],
    toDo: [lookAtIt, TELL_US],
  };
}

function tokenRevoked(_cause: object, about: About): Explanation {
  return {
    what: 'Its token was not valid any more when it came',
    details: ['It came while Postgres was away, so nobody could tell; it was judged when Postgres was back.'],
    toDo: [{ say: 'If the POS still calls with this token, give it a new one.' }, impostor(about)],
  };
}

function locationGone(): Explanation {
  return {
    what: 'Its location was removed before it was read',
    details: ['It came while Postgres was away, and was read when Postgres was back.'],
    toDo: [{ say: 'If the location is to be served, configure it again and replay the webhook.' }],
  };
}

function otherIntegration({ integration: now }: { integration: string }, { integration }: About): Explanation {
  return {
    what: `Its location is served by ${now} now`,
    details: [`It came through ${integration} while Postgres was away, and was read when Postgres was back.`],
    toDo: [{ say: 'Nothing, if the location was to be moved. Its old POS still sends.' }],
  };
}

const OLD_TOKEN: Record<Extract<DropCause, { code: 'old_token' }>['state'], string> = {
  revoked: 'was revoked',
  expired: 'had expired',
  'of another integration': 'is for this integration, and the location has another since',
};

function oldToken({ state, tokenId }: Extract<DropCause, { code: 'old_token' }>, about: About): Explanation {
  const hasMoved = state === 'of another integration';
  return {
    what: 'Refused: old token',
    details: [
      `It was answered 401, and is kept for a day. Its token ${tokenId} ${OLD_TOKEN[state]}: ` +
        'this POS was not given the new one.',
    ],
    toDo: [
      hasMoved
        ? { say: 'If the location was to be moved, end the webhooks at its former POS. It cannot be replayed.' }
        : { say: 'Give the POS a new token, with the address that it calls.', run: commandsOf(about).connect },
      ...(hasMoved
        ? []
        : [{ say: 'Then replay it. A replay of all that match leaves it out, unless it is asked for.' }]),
      { say: 'Replay nothing that you do not know to be of the POS: whoever has the old token could have sent it.' },
    ],
  };
}

function notKnown({ webhookId }: About, reason: string | null): Explanation {
  return {
    what: NOT_KNOWN,
    details: [reason === null ? 'No reason is kept.' : `The service says: ${reason}.`],
    toDo: [{ say: 'All that is known of it:', run: `expediter webhook show ${webhookId}` }, TELL_US],
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
