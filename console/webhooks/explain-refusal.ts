import { commandsOf } from '../locations/commands.ts';
import type { ReplayCause } from '../wire.ts';
import { explainBy, type About, type Explanation, type Words } from './explanation.ts';
import { issueInWords } from '../../src/core/domain/issue-in-words.ts';

export const NOT_REPLAYABLE = 'It cannot be replayed';

const WORDS: Words<ReplayCause> = {
  only_beginning_stored: () => ({
    what: 'It cannot be replayed: only its beginning is kept',
    toDo: [{ say: 'If it is a real one, raise WEBHOOK_BODY_LIMIT of the service, and have the POS send it again.' }],
  }),
  erased: () => ({ what: 'It cannot be replayed: its body was erased with what told of the member', toDo: [] }),
  not_stored: () => ({ what: 'It cannot be replayed: the webhook itself is no longer kept', toDo: [] }),
  no_location: (_cause, about) => ({
    what: `It cannot be replayed: there is no location ${about.locationId} any more`,
    toDo: [
      {
        say: 'If there should be, put it in place again, with its settings in a file settings.json:',
        run: commandsOf(about).putSettings,
      },
    ],
  }),
  other_integration: ({ integration: now }, { integration, locationId }) => ({
    what: `It cannot be replayed: it came through ${integration}, and ${locationId} is served by ${now} now`,
    toDo: [{ say: `It would be read as what ${now} sends, which it is not. Look for the order at the POS.` }],
  }),
  settings_sealed: ({ keyId }, about) => ({
    what: 'The settings of its location cannot be opened',
    details: [sealedWith(keyId)],
    toDo: [
      { say: 'Give the service the SETTINGS_KEY that they are encrypted with; or store the settings anew:' },
      {
        say: 'All of them, in a file settings.json: what the location had before is replaced.',
        run: commandsOf(about).putSettings,
      },
    ],
  }),
  settings_of_another: (_cause, about) => ({
    what: 'The settings of its location are those of another one',
    toDo: [
      { say: 'Find out who wrote to the database past the service.' },
      {
        say: 'Then store the settings anew, all of them, in a file settings.json:',
        run: commandsOf(about).putSettings,
      },
    ],
  }),
  credentials_sealed: ({ keyId }) => ({
    what: 'What is encrypted of it cannot be opened',
    details: [sealedWith(keyId)],
    toDo: [{ say: 'Give the service the SETTINGS_KEY of the time at which it came.' }],
  }),
  sealed_for_another: () => ({
    what: 'What is encrypted of it is of another webhook',
    toDo: [{ say: 'Find out who wrote to the database past the service.' }],
  }),
  unknown_integration: ({ integration }) => ({
    what: `The service does not know the integration ${integration} any more`,
    toDo: [{ say: 'See that PROVIDER_MODULES names its module, for each process of the service.' }],
  }),
  wrong_settings: ({ issues }, about) => ({
    what: 'The settings of its location cannot be used',
    details: issues.map((issue) => `${issueInWords(issue)}.`),
    toDo: [
      { say: 'See what they have to be:', run: commandsOf(about).schema },
      { say: 'Store them anew, all of them, in a file settings.json:', run: commandsOf(about).putSettings },
    ],
  }),
  no_public_url: () => ({
    what: 'We do not know which address the signature covers',
    toDo: [{ say: 'Set PUBLIC_URL for the service, to the address that the POS calls.' }],
  }),
  postgres_gave_up: ({ sqlstate }) => ({
    what: 'Something else held it up',
    details: [`Postgres gave up with the code ${sqlstate}.`],
    toDo: [{ say: 'Try it again.' }],
  }),
};

function sealedWith(keyId: string): string {
  return `The key “${keyId}” is not in SETTINGS_KEY, or is another one there.`;
}

/** Explains to an operator why a webhook cannot be replayed. */
export function explainRefusal(
  { cause, refused }: { cause: { code: string }; refused: string },
  about: About,
): Explanation {
  return (
    explainBy(WORDS, cause, about, refused) ?? {
      what: NOT_REPLAYABLE,
      details: [`The service says: ${refused}.`],
      toDo: [{ say: 'All that is known of it:', run: `expediter webhook show ${about.webhookId}` }],
    }
  );
}
