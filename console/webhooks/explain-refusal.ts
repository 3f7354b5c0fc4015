import { commandsOf } from '../locations/commands.ts';
import { explainBy, type About, type Explanation, type Rule } from './explanation.ts';

export const NOT_REPLAYABLE = 'It cannot be replayed';

const RULES: readonly Rule[] = [
  [
    /^only its beginning is kept/,
    () => ({
      what: 'It cannot be replayed: only its beginning is kept',
      toDo: [{ say: 'If it is a real one, raise WEBHOOK_BODY_LIMIT of the service, and have the POS send it again.' }],
    }),
  ],
  [
    /^its body was erased/,
    () => ({
      what: 'It cannot be replayed: its body was erased with what told of the member',
      toDo: [],
    }),
  ],
  [
    /^the webhook that it replays, with its body, is not kept/,
    () => ({
      what: 'It cannot be replayed: the webhook itself is no longer kept',
      toDo: [],
    }),
  ],
  [
    /^there is no location/,
    (about) => ({
      what: `It cannot be replayed: there is no location ${about.locationId} any more`,
      toDo: [{ say: 'If there should be, put it in place again:', run: commandsOf(about).putSettings }],
    }),
  ],
  [
    /^it came through ".*", and ".*" is served by "(.*)" now$/s,
    ({ integration, locationId }, now = '') => ({
      what: `It cannot be replayed: it came through ${integration}, and ${locationId} is served by ${now} now`,
      toDo: [{ say: `It would be read as what ${now} sends, which it is not. Look for the order at the POS.` }],
    }),
  ],
  [
    /^settings cannot be decrypted: (.*)$/s,
    (about, why = '') => ({
      what: 'The settings of its location cannot be opened',
      details: [`${why}.`],
      toDo: [
        { say: 'Give the service the SETTINGS_KEY that they are encrypted with; or store the settings anew:' },
        { say: 'All of them: what the location had before is replaced.', run: commandsOf(about).putSettings },
      ],
    }),
  ],
  [
    /^what it is verified with cannot be decrypted: (.*)$/s,
    (_about, why = '') => ({
      what: 'What it is verified with cannot be opened',
      details: [`${why}.`],
      toDo: [{ say: 'Give the service the SETTINGS_KEY of the time at which it came.' }],
    }),
  ],
  [
    /^no integration is called/,
    ({ integration }) => ({
      what: `The service does not know the integration ${integration} any more`,
      toDo: [{ say: 'See that PROVIDER_MODULES names its module, for each process of the service.' }],
    }),
  ],
  [
    /^settings: (.*)$/s,
    (about, why = '') => ({
      what: 'The settings of its location cannot be used',
      details: [`${why}.`],
      toDo: [
        { say: 'See what they have to be:', run: commandsOf(about).schema },
        { say: 'Store them anew, all of them:', run: commandsOf(about).putSettings },
      ],
    }),
  ],
  [
    /^PUBLIC_URL is unset/,
    () => ({
      what: 'We do not know which address the signature covers',
      toDo: [{ say: 'Set PUBLIC_URL for the service, to the address that the POS calls.' }],
    }),
  ],
  [
    /^Postgres gave up on it \((\w*)\)/,
    (_about, code = '') => ({
      what: 'Something else held it up',
      details: [`Postgres gave up with the code ${code}.`],
      toDo: [{ say: 'Try it again.' }],
    }),
  ],
];

/** Says in an operator's words why a webhook cannot be replayed. @param refused in the service's words */
export function explainRefusal(refused: string, about: About): Explanation {
  return (
    explainBy(RULES, refused, about) ?? {
      what: NOT_REPLAYABLE,
      details: [`The service says: ${refused}.`],
      toDo: [{ say: 'All that is known of it:', run: `expediter webhook show ${about.webhookId}` }],
    }
  );
}
