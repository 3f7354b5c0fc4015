/**
 * What each cause why a webhook is dropped or not replayed means, and what to do. The console uses this file too, so it
 * imports no schema.
 */
import { describeCause, helpWith } from './explain-cause.ts';
import { issueInWords } from './issue-in-words.ts';
import { labelOf } from './label-of.ts';
import type { LocationCause } from './location-cause.ts';
import { commandsOf } from './location-commands.ts';
import type { ShapeIssue } from './shape-issues.ts';
import { settingsPage, stepsOf, vendorOf, type Names, type Step, type ToDo } from './remedy.ts';
import type { WebhookAuth } from './webhook-auth.ts';
import type { DropCause, ReplayCause } from './webhook-cause.ts';

/** What is wrong and what to do, for an operator who does not know the code. */
export type Explanation = {
  /** The problem in one sentence. */
  what: string;
  /** Details, one sentence each. */
  details: readonly string[];
  toDo: readonly Step[];
};

/** The webhook that is explained. */
type About = {
  webhookId: string;
  locationId: string;
  integration: string;
  /** How its POS authenticates, if the provider declares it. */
  webhookAuth?: WebhookAuth | null;
} & Names;

type Row = { what: string; details?: string | readonly string[]; toDo: ToDo };
/** `said` is the service's sentence. */
type Explain<Cause> = (cause: Cause, about: About, said: string | null) => Row;
type Table<Cause extends { code: string }> = {
  readonly [Code in Cause['code']]: Explain<Extract<Cause, { code: Code }>>;
};

/** Headlines for codes of third-party providers. The provider's own sentence follows. */
export const NOT_PROVEN = 'Not authenticated';
export const NOT_READ = 'The contents cannot be read';
export const NOT_KNOWN = 'Not usable';
export const NOT_REPLAYABLE = 'It cannot be replayed';

const NOT_BY_REPLAY = 'A replay does not help. Check the order at the POS, or have the POS send the webhook again.';
const CHECK_BODY =
  'Reveal its body below. If the POS or a proxy now sends another format, the provider must be updated.';
const REPORT_IT =
  'Report the webhook id to the maintainers of the service. Remove member data before you send a body. When a new ' +
  'version can read it, replay it.';
const WHILE_AWAY = 'It arrived while Postgres was unavailable';

/** A list of dropped webhooks in the console. */
function droppedOf(locationId: string, oldToken?: true): NonNullable<Step['link']> {
  const query = new URLSearchParams({
    outcome: 'dropped',
    location: locationId,
    ...(oldToken && { oldToken: 'true' }),
  });
  const name = oldToken ? 'Webhooks with an old token' : 'Dropped webhooks of the location';
  return { name, href: `/console/webhooks?${query.toString()}` };
}

/** Others were dropped for the same reason, so all are replayed. */
const replayAll = ({ locationId }: About): Step => ({
  say: 'Then replay it, and the others that were dropped. A replay uses the current settings, and begins with a dry run.',
  link: droppedOf(locationId),
});

/** Corrects one setting. All others stay. */
const correct = (setting: string, about: About): Step[] => [
  {
    say: `Enter ${setting} again, above the dropped webhooks of the location. All other settings stay.`,
    link: droppedOf(about.locationId),
  },
  {
    say: 'Or write only what changes to a file settings.json, and store it by command line:',
    run: commandsOf(about).changeSettings,
  },
];

const IMPOSTOR =
  'If neither the POS nor the settings were changed, an attacker may know the webhook address. Give the location a new ' +
  'webhook token first, then revoke the old one on its page.';

/** What people call the secret in the settings. */
const secretOf = ({ webhookAuth }: About): string =>
  webhookAuth ? webhookAuth.settings.map((name) => `“${labelOf(name)}”`).join(' and ') : 'the secret';

/** The connect command, if it exchanges the secret with the POS. */
const connect = (about: About, say: string): Step | false =>
  about.webhookAuth?.byConnect === true && { say, run: commandsOf(about).connect };

const sentencesOf = (issues: readonly ShapeIssue[]): string[] => issues.map((issue) => `${issueInWords(issue)}.`);

const wrongTime: Explain<Extract<DropCause, { code: 'signature_too_old' | 'signature_ahead' }>> = (cause) => {
  const { header, seconds, isRight } = cause;
  const minutes = Math.round(seconds / 60);
  const isAhead = cause.code === 'signature_ahead';
  return {
    what: isAhead
      ? `Signed with a time more than ${minutes} minutes ahead`
      : `Signed more than ${minutes} minutes before it arrived`,
    details: `The time is in its header ${header}.${isRight === true ? ' The signature is right.' : ''} An old webhook may be a copy sent by an attacker.`,
    toDo: [
      isAhead
        ? 'Correct the clock of the sending machine, and synchronise it.'
        : 'Correct the clock of the sending machine. If the sender retries webhooks, it must sign each try again.',
      isRight === true ? 'If it is no copy, replay it by itself. A replay of many leaves it out.' : NOT_BY_REPLAY,
    ],
  };
};

const OLD_TOKEN: Record<Extract<DropCause, { code: 'old_token' }>['state'], string> = {
  revoked: 'was revoked',
  expired: 'had expired',
  'of another integration': 'is for this integration, but the location now has another one',
};

const DROPS: Table<DropCause> = {
  signature_missing: ({ header }, about) => ({
    what: 'Not signed',
    details: `Its header ${header} is missing. Webhooks of this location must be signed with the secret in the setting ${secretOf(about)}.`,
    toDo: [
      'Enable signing at the POS, with the same secret.',
      about.webhookAuth?.optional === true && {
        say:
          'If this POS cannot sign, remove the secret from the settings of the location. This needs the role integrator. ' +
          'Then only the token in the address authenticates the POS.',
        ...settingsPage(about),
      },
      IMPOSTOR,
    ],
  }),
  signature_of_other_scheme: ({ header }, about) => ({
    what: 'The signature has an unknown format',
    details: `Its header ${header} does not have the format that this POS documents.`,
    toDo: [
      'Check which signature method is selected at the POS, and whether a proxy in front of the service changes headers.',
      replayAll(about),
      IMPOSTOR,
    ],
  }),
  signature_wrong: ({ header }, about) => {
    const { urlSetting, previousSetting } = about.webhookAuth ?? {};
    const details = [
      `It is in the header ${header}, and is checked with ${secretOf(about)}. The secret was changed on one side only, ` +
        'or was never the same.',
    ];
    if (urlSetting !== undefined)
      details.push(
        `This POS also signs the URL that it calls. The URL must equal ${urlSetting} in the settings, or the one made from PUBLIC_URL.`,
      );
    return {
      what: "The signature does not match this location's secret",
      details,
      toDo: [
        connect(about, 'Fetch the current secret from the POS:'),
        ...correct(secretOf(about), about),
        previousSetting !== undefined &&
          `If the POS uses two secrets, or you are not sure, keep the stored one. Enter the other one as “${labelOf(previousSetting)}”: both are valid then.`,
        replayAll(about),
        IMPOSTOR,
      ],
    };
  },
  signature_too_old: wrongTime,
  signature_ahead: wrongTime,
  signature_time_unreadable: ({ header }) => ({
    what: 'The time of its signature is missing',
    details: `Its header ${header} is not a number of seconds since 1970.`,
    toDo: ['Ask the developer of the bridge to this POS to fix it.', NOT_BY_REPLAY],
  }),
  signature_time_missing: ({ field }) => ({
    what: 'The time of its signature is missing',
    details: `Its body has no “${field}”, which this POS always sends. Without it, the signature cannot be checked.`,
    toDo: ['Check its body: it may be truncated, or an attacker may have sent it.', NOT_BY_REPLAY, IMPOSTOR],
  }),
  password_missing: ({ header }, about) => ({
    what: 'The user name and password are missing',
    details: `This POS does not sign. Each webhook must carry ${secretOf(about)} of the settings.`,
    toDo: [
      connect(about, 'Register the webhook at the POS again, with both:'),
      `Check whether a proxy in front of the service removes the header ${header}.`,
      NOT_BY_REPLAY,
      IMPOSTOR,
    ],
  }),
  password_wrong: (_cause, about) => ({
    what: 'The user name or password is wrong',
    details: `The POS sends other values than ${secretOf(about)} of the location's settings.`,
    toDo: [
      connect(about, 'Send the values of the settings to the POS:'),
      ...correct(secretOf(about), about),
      replayAll(about),
      IMPOSTOR,
    ],
  }),
  key_unknown: ({ setting }, about) => ({
    what: 'The signing key of the POS is not stored yet',
    details: `The settings of the location have no ${setting}.`,
    toDo: [{ say: 'Fetch it from the POS:', run: commandsOf(about).connect }, replayAll(about)],
  }),
  signed_url_unknown: ({ setting }, about) => ({
    what: 'The signed address is not known',
    details: `This POS signs the URL that it calls. The settings have no ${setting}, and PUBLIC_URL is not set.`,
    toDo: [
      'Set PUBLIC_URL of the service to the address that the POS calls. Or:',
      ...correct(setting, about),
      replayAll(about),
    ],
  }),
  not_authentic: (_cause, about, said) => ({
    what: NOT_PROVEN,
    details: `The provider of ${vendorOf(about, about.integration)} reports: ${said}.`,
    toDo: [...correct(secretOf(about), about), replayAll(about)],
  }),

  too_deep: ({ limit }) => ({
    what: 'The JSON is nested too deeply',
    details: `At most ${limit} levels are read. A webhook of a POS has about ten.`,
    toDo: [CHECK_BODY, NOT_BY_REPLAY],
  }),
  not_utf8: () => ({
    what: 'The body is not text',
    details: 'It must be JSON in UTF-8. It may be compressed, or in another encoding.',
    toDo: [CHECK_BODY, REPORT_IT],
  }),
  not_json: ({ wanted }) => ({
    what: 'The body is not JSON',
    details: `It must be ${wanted}.`,
    toDo: [
      'Check that the POS or its bridge is configured to send JSON, and that it calls the right address.',
      CHECK_BODY,
      REPORT_IT,
    ],
  }),
  names_no_order: ({ fields }) => ({
    what: 'It names no order',
    details: `These fields are missing or empty: ${fields.join(', ')}.`,
    toDo: ['If such webhooks are not about orders, disable them at the POS.', CHECK_BODY, REPORT_IT],
  }),
  too_many_events: ({ count, limit }) => ({
    what: `${count} status changes: at most ${limit} are accepted`,
    toDo: ['Configure the POS to send fewer in one webhook.', NOT_BY_REPLAY],
  }),
  wrong_shape: ({ issues }) => ({
    what: 'Not in the format of this POS',
    details: sentencesOf(issues),
    toDo: [CHECK_BODY, REPORT_IT],
  }),
  unreadable: (_cause, about, said) => ({
    what: NOT_READ,
    details: `The provider of ${vendorOf(about, about.integration)} reports: ${said}.`,
    toDo: [CHECK_BODY, REPORT_IT],
  }),

  translator_failed: ({ error }, about) => ({
    what: 'The provider has a bug',
    details: `The provider of ${vendorOf(about, about.integration)} failed with a ${error}. The POS and the settings are not the cause.`,
    toDo: [REPORT_IT],
  }),
  too_large: ({ limit }) => ({
    what: 'Too large',
    details: `It has more than ${limit.toLocaleString('en')} bytes. Only its beginning is stored.`,
    toDo: [
      'If it is genuine, raise WEBHOOK_BODY_LIMIT of the service.',
      'It cannot be replayed. Have the POS send it again.',
    ],
  }),
  refused_by_postgres: ({ sqlstate }) => ({
    what: 'A value cannot be stored',
    details: `Postgres rejected it with the code ${sqlstate}.`,
    toDo: [CHECK_BODY, REPORT_IT],
  }),

  token_revoked: () => ({
    what: 'The token was no longer valid',
    details: `${WHILE_AWAY}. Its token was checked when Postgres was back.`,
    toDo: ['If the POS still uses this token, give it a new one.', IMPOSTOR],
  }),
  no_location: () => ({
    what: 'The location was removed',
    details: `${WHILE_AWAY}, and was processed when Postgres was back.`,
    toDo: 'If the location is still needed, configure it again and replay the webhook.',
  }),
  other_integration: ({ integration: now }, about) => ({
    what: `The location now uses ${vendorOf(about, now)}`,
    details: `It arrived for ${vendorOf(about, about.integration)} while Postgres was unavailable, and was processed when Postgres was back.`,
    toDo: 'If the location was moved on purpose, no action is needed. Its former POS still sends webhooks.',
  }),

  old_token: ({ state, tokenId }, about) => ({
    what: 'Sent with an old token',
    details: `It was refused, and is stored for a day. Its token ${tokenId} ${OLD_TOKEN[state]}. The POS still uses it.`,
    toDo: [
      ...(state === 'of another integration'
        ? [
            'If the location was moved on purpose, disable the webhooks at its former POS. This webhook cannot be replayed.',
          ]
        : [
            { say: 'Give the POS a new token, as part of the address that it calls.', run: commandsOf(about).connect },
            { say: 'Then replay all with an old token.', link: droppedOf(about.locationId, true) },
          ]),
      'Replay only if you are sure that the POS sent it: anyone with the old token could have.',
    ],
  }),
};

/** The location cannot be used, so nothing can be replayed. */
const ofLocation: Explain<LocationCause> = (cause, about) => {
  const says = describeCause(cause);
  return {
    what: says.charAt(0).toUpperCase() + says.slice(1),
    details: cause.code === 'wrong_settings' ? sentencesOf(cause.issues) : [],
    toDo: helpWith(cause, about),
  };
};

const REFUSALS: Table<ReplayCause> = {
  only_beginning_stored: () => ({
    what: 'It cannot be replayed: only its beginning is stored',
    toDo: 'If it is genuine, raise WEBHOOK_BODY_LIMIT of the service, and have the POS send it again.',
  }),
  erased: () => ({ what: 'It cannot be replayed: its body was erased with the data of the member', toDo: [] }),
  not_stored: () => ({ what: 'It cannot be replayed: its contents are no longer stored', toDo: [] }),
  other_integration: ({ integration: now }, about) => ({
    what: `It cannot be replayed: it arrived for ${vendorOf(about, about.integration)}, but the location now uses ${vendorOf(about, now)}`,
    toDo: `${vendorOf(about, now)} cannot read it. Check the order at the POS.`,
  }),
  credentials_sealed: ({ keyId }) => ({
    what: 'Its encrypted headers cannot be decrypted',
    details: `The key "${keyId}" is not in SETTINGS_KEY, or has another value there.`,
    toDo: 'Add the key that was used when it arrived to SETTINGS_KEY.',
  }),
  sealed_for_another: () => ({
    what: 'Its encrypted headers belong to another webhook',
    toDo: 'Find out who changed the database directly.',
  }),
  postgres_gave_up: ({ sqlstate }) => ({
    what: 'The database was busy',
    details: `Postgres aborted the replay with the code ${sqlstate}.`,
    toDo: 'Try again.',
  }),
  no_location: () => ({
    what: 'It cannot be replayed: its location was removed',
    toDo: [
      {
        say: 'If the location is still needed, add it again.',
        link: { name: 'Add a location', href: '/console/locations/new' },
      },
    ],
  }),
  settings_sealed: ofLocation,
  settings_of_another: ofLocation,
  unknown_integration: ofLocation,
  wrong_settings: ofLocation,
  no_public_url: ofLocation,
};

/** @param unknown explains a webhook without a cause, or with one that a newer version added */
function explainBy<Cause extends { code: string }>(
  table: Table<Cause>,
  { cause, said }: { cause: { code: string } | null; said: string | null },
  about: About,
  unknown: { what: string; toDo?: string },
): Explanation {
  if (cause !== null && Object.hasOwn(table, cause.code)) {
    const explain: Explain<never> = table[cause.code as Cause['code']];
    const { what, details = [], toDo } = explain(cause as never, about, said);
    return { what, details: [details].flat(), toDo: stepsOf(toDo) };
  }
  const show = { say: 'Show everything that is known about it:', run: `expediter webhook show ${about.webhookId}` };
  return {
    what: unknown.what,
    details: [said === null ? 'No reason is stored.' : `The service reports: ${said}.`],
    toDo: stepsOf([show, unknown.toDo ?? false]),
  };
}

/** Explains to an operator why a webhook was dropped. */
export function explainDrop(
  { cause, reason }: { cause: { code: string } | null; reason: string | null },
  about: About,
): Explanation {
  return explainBy(DROPS, { cause, said: reason }, about, { what: NOT_KNOWN, toDo: REPORT_IT });
}

/** Explains to an operator why a webhook cannot be replayed. */
export function explainRefusal(
  { cause, refused }: { cause: { code: string }; refused: string },
  about: About,
): Explanation {
  return explainBy(REFUSALS, { cause, said: refused }, about, { what: NOT_REPLAYABLE });
}
