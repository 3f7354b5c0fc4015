import { commandsOf } from '../locations/commands.ts';
import { explainBy, type About, type Explanation, type Rule, type Step } from './explanation.ts';

/** What of a location's settings a POS's webhooks are verified with. */
export const VERIFIED_WITH: ReadonlyMap<string, string> = new Map([
  ['standard', 'secret'],
  ['hubrise', 'clientSecret'],
  ['square', 'signatureKey'],
  ['toast', 'webhookSecret'],
  ['deliverect', 'hmacSecret'],
  ['lightspeed-k', 'webhookUsername and webhookPassword'],
]);

/** Where the words of a provider of somebody else's are all there is. */
export const NOT_PROVEN = 'It does not prove that the POS sent it';
export const NOT_READ = 'What it says cannot be read';
export const NOT_KNOWN = 'It could not be used';

const RULES: readonly Rule[] = [
  [/^not authentic: no signatureKey yet/, noKeyYet],
  [/^not authentic: neither notificationUrl nor PUBLIC_URL/, noUrl],
  [/^not authentic: the header authorization is missing$/, noPassword],
  [/^not authentic: the user name and password/, wrongPassword],
  [/^not authentic: the header (\S+) is missing$/, unsigned],
  [/^not authentic: the header (\S+) does not begin with/, otherScheme],
  [/^not authentic: (?:the signature in (\S+) is not ours|no signature in (\S+) is ours)$/, wrongSignature],
  [/^not authentic: (\S+) is over (\d+) s (old|ahead)$/, wrongTime],
  [/^not authentic: (\S+) is not a count of seconds$/, noTime],
  [/^not authentic: the body holds no timestamp/, noTimeInside],
  [/^not authentic: (.*)$/s, notProven],
  [/^unreadable: the body is nested deeper than (\d+)/, tooDeep],
  [/^unreadable: the body is not UTF-8/, notText],
  [/^unreadable: the body is not JSON(?:: (.*) is required)?/s, notJson],
  [/^unreadable: (.*?) are (?:both|all) (?:missing|empty)/s, namesNoOrder],
  [/^unreadable: value: names no order/, namesNoOrder],
  [/^unreadable: value: holds (\d+) events, at most (\d+) pass/, tooMany],
  [/^unreadable: ((?:\w[\w.-]*: [^;]+)(?:; [^;]+)*)$/s, otherShape],
  [/^unreadable: (.*)$/s, notRead],
  [/^the translator failed: (.*)$/s, ourMistake],
  [/^over (\d+) bytes/, tooLarge],
  [/^Postgres refused what it says \((\w*)\)/, cannotBeStored],
];

/** Says in an operator's words why a webhook was dropped. @param reason as the webhook has it */
export function explainDrop(reason: string | null, about: About): Explanation {
  return explainBy(RULES, reason ?? '', about) ?? notKnown(about, reason ?? '');
}

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
      say: 'Put the right ones into a file and store them. All of them: what the location had before is replaced.',
      run: putSettings,
    },
  ];
}

const impostor = ({ locationId }: About): Step => ({
  say:
    `If nobody changed anything at either side, somebody else may know the address: give ${locationId} a new webhook ` +
    'token, and revoke the old one on the page of the location.',
});

/** As the settings call it. */
function secretOf({ integration }: About): string {
  const names = VERIFIED_WITH.get(integration);
  return names === undefined ? 'the secret' : `“${names.replace(' and ', '” and “')}”`;
}

/** By `connect`, where the POS is told what it signs with or tells us. */
function connectsItself(about: About, say: string): Step[] {
  return ['square', 'lightspeed-k'].includes(about.integration) ? [{ say, run: commandsOf(about).connect }] : [];
}

function wrongSignature(about: About, one = '', other = ''): Explanation {
  const { integration } = about;
  return {
    what: 'It is signed with another secret than ours',
    details: [
      `Its header ${one || other} does not fit ${secretOf(about)} of the location's settings: the secret was changed ` +
        'at one side alone, or never was the same.',
      ...(integration === 'square'
        ? [
            'Square signs the URL it calls as well: it has to be the notificationUrl of the settings, or ours by PUBLIC_URL.',
          ]
        : []),
    ],
    toDo: [
      ...connectsItself(about, 'Let the POS say what it signs with:'),
      { say: `Compare the secret at the POS with the one that you stored as ${secretOf(about)}.` },
      ...putSettings(about),
      ...(integration === 'standard'
        ? [{ say: 'While the POS changes over, the old secret may stay beside the new one, as “previousSecret”.' }]
        : []),
      TRY_DRY,
      impostor(about),
    ],
  };
}

function unsigned(about: About, header = ''): Explanation {
  return {
    what: 'It is not signed',
    details: [
      `Its header ${header} is missing. Webhooks of this location have to be signed with the secret that its settings call ${secretOf(about)}.`,
    ],
    toDo: [
      { say: 'Switch signing on at the POS, with the same secret.' },
      ...(about.integration === 'standard'
        ? [
            {
              say:
                'If this POS cannot sign, store the settings without a secret: the token in the address alone then says ' +
                'who sent it.',
              run: commandsOf(about).putSettings,
            },
          ]
        : []),
      impostor(about),
    ],
  };
}

function otherScheme(about: About, header = ''): Explanation {
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

function noPassword(about: About): Explanation {
  return {
    what: 'It came without a user name and a password',
    details: [`This POS signs nothing: ${secretOf(about)} of the settings have to come with each webhook.`],
    toDo: [
      ...connectsItself(about, 'Register the webhook at the POS anew, with both:'),
      { say: 'See whether a proxy before us takes the header authorization away.' },
      NOT_BY_REPLAY,
      impostor(about),
    ],
  };
}

function wrongPassword(about: About): Explanation {
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

function wrongTime(_about: About, header = '', seconds = '', which = ''): Explanation {
  const minutes = Math.round(Number(seconds) / 60);
  return {
    what:
      which === 'ahead'
        ? `It says that it was signed more than ${minutes} minutes after it came`
        : `It was signed more than ${minutes} minutes before it came`,
    details: [`So says its header ${header}. An old one may be a copy that somebody sends again.`],
    toDo: [
      { say: 'Set the clock of the machine that sends it, and see that it stays right.' },
      ...(which === 'ahead'
        ? []
        : [{ say: 'If the sender repeats what it could not send before, it has to sign each try anew.' }]),
      NOT_BY_REPLAY,
    ],
  };
}

function noTime(_about: About, header = ''): Explanation {
  return {
    what: 'It does not say when it was signed',
    details: [`Its header ${header} should be a count of seconds since 1970, and is something else.`],
    toDo: [{ say: 'Whoever makes the bridge to this POS has to mend it.' }, NOT_BY_REPLAY],
  };
}

function noTimeInside(about: About): Explanation {
  return {
    what: 'It does not say when it was signed',
    details: ['Its body has no timestamp, without which its signature cannot be checked: Toast always sends one.'],
    toDo: [
      { say: 'Look at its body: somebody else than Toast may have sent it, or something on the way has cut it off.' },
      NOT_BY_REPLAY,
      impostor(about),
    ],
  };
}

function noKeyYet(about: About): Explanation {
  return {
    what: 'We do not know yet what the POS signs with',
    details: ['The settings of the location have no signatureKey.'],
    toDo: [{ say: 'Fetch it from the POS:', run: commandsOf(about).connect }, TRY_DRY],
  };
}

function noUrl(about: About): Explanation {
  return {
    what: 'We do not know which address the signature covers',
    details: ['This POS signs the URL it calls. The settings have no notificationUrl, and the service no PUBLIC_URL.'],
    toDo: [
      { say: 'Set PUBLIC_URL for the service, to the address that the POS calls; or store notificationUrl:' },
      ...putSettings(about),
      TRY_DRY,
    ],
  };
}

function notProven(about: About, why = ''): Explanation {
  return {
    what: NOT_PROVEN,
    details: [`What verifies webhooks of ${about.integration} says: ${why}.`],
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

function tooDeep(_about: About, limit = ''): Explanation {
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

function notJson(_about: About, wanted = ''): Explanation {
  return {
    what: 'Its body is not JSON',
    details: [wanted === '' ? 'It should be.' : `It should be ${wanted}.`],
    toDo: [
      { say: 'See whether the POS, or the bridge to it, is set to send JSON, and whether the address belongs to it.' },
      lookAtIt,
      TELL_US,
    ],
  };
}

function namesNoOrder(_about: About, fields = ''): Explanation {
  return {
    what: 'It does not say which order it is about',
    details: [fields === '' ? 'It has neither our id nor the one of the POS.' : `Nothing is in ${fields}.`],
    toDo: [
      { say: 'If the POS sends such webhooks about something else than orders, it can be told not to.' },
      lookAtIt,
      TELL_US,
    ],
  };
}

function tooMany(_about: About, count = '', limit = ''): Explanation {
  return {
    what: `It reports ${count} changes at once, and at most ${limit} are taken`,
    toDo: [{ say: 'Have the POS send fewer in one webhook.' }, NOT_BY_REPLAY],
  };
}

function otherShape(_about: About, issues = ''): Explanation {
  return {
    what: 'It is not what this POS usually sends',
    details: issues.split('; ').map(inWords),
    toDo: [lookAtIt, TELL_US],
  };
}

/** @param issue `order.status: Invalid input: expected string, received undefined`, as the schemas say it */
function inWords(issue: string): string {
  const [, path = '', problem = issue] = /^(\w[\w.-]*): (.*)$/s.exec(issue) ?? [];
  const subject = path === '' ? '' : path === 'value' ? 'The whole of it ' : `${path} `;
  const [, expected, received] = /^Invalid input: expected (.+), received (.+)$/.exec(problem) ?? [];
  if (received === 'undefined') return `${subject}is missing; ${withArticle(expected ?? '')} is required.`;
  if (received !== undefined) {
    return `${subject}is ${withArticle(received)}; ${withArticle(expected ?? '')} is required.`;
  }
  const [, longest] = /^Too big: expected string to have <=(\d+) characters$/.exec(problem) ?? [];
  if (longest !== undefined) return `${subject}is longer than ${longest} characters.`;
  const [, allowed] = /^Invalid option: expected one of (.+)$/.exec(problem) ?? [];
  if (allowed !== undefined) return `${subject}is none of ${allowed.replaceAll('"', '').replaceAll('|', ', ')}.`;
  return problem.startsWith('is ') || problem.startsWith('holds ')
    ? `${subject}${problem}.`
    : `${subject}: ${problem}.`;
}

function withArticle(kind: string): string {
  const names: Record<string, string> = { array: 'a list', int: 'a whole number', null: 'null', object: 'an object' };
  return names[kind] ?? `a ${kind}`;
}

function notRead({ integration }: About, why = ''): Explanation {
  return {
    what: NOT_READ,
    details: [`What reads webhooks of ${integration} says: ${why}.`],
    toDo: [lookAtIt, TELL_US],
  };
}

function ourMistake({ integration }: About, name = ''): Explanation {
  return {
    what: 'What reads it has a mistake',
    details: [`The provider of ${integration} failed with a ${name}. Neither the POS nor the settings are to blame.`],
    toDo: [TELL_US],
  };
}

function tooLarge(_about: About, limit = ''): Explanation {
  return {
    what: 'It is too large',
    details: [`It is over ${Number(limit).toLocaleString('en')} bytes, and only its beginning is kept.`],
    toDo: [
      { say: 'If it is a real one, raise WEBHOOK_BODY_LIMIT of the service.' },
      { say: 'It cannot be replayed: have the POS send it again.' },
    ],
  };
}

function cannotBeStored(_about: About, code = ''): Explanation {
  return {
    what: 'It holds something that cannot be stored',
    details: [`Postgres refused it with the code ${code}.`],
    toDo: [lookAtIt, TELL_US],
  };
}

function notKnown({ webhookId }: About, reason: string): Explanation {
  return {
    what: NOT_KNOWN,
    details: [reason === '' ? 'No reason is kept.' : `The service says: ${reason}.`],
    toDo: [{ say: 'All that is known of it:', run: `expediter webhook show ${webhookId}` }, TELL_US],
  };
}
