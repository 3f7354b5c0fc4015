import { commandsOf } from '../locations/commands.ts';
import type { ReplayCause } from '../wire.ts';
import { pageOf } from '../parts/page-of.ts';
import { explainBy, type About, type Explanation, type Step, type Words } from './explanation.ts';
import { issueInWords } from '../../src/core/domain/issue-in-words.ts';

export const NOT_REPLAYABLE = 'It cannot be replayed';

const WORDS: Words<ReplayCause> = {
  only_beginning_stored: () => ({
    what: 'It cannot be replayed: only its beginning is stored',
    toDo: [{ say: 'If it is genuine, raise WEBHOOK_BODY_LIMIT of the service, and have the POS send it again.' }],
  }),
  erased: () => ({ what: 'It cannot be replayed: its body was erased with the data of the member', toDo: [] }),
  not_stored: () => ({ what: 'It cannot be replayed: its contents are no longer stored', toDo: [] }),
  no_location: (_cause, about) => ({
    what: `It cannot be replayed: the location ${about.locationId} was removed`,
    toDo: [{ say: 'If the location is still needed, add it again.', link: ADD }],
  }),
  other_integration: ({ integration: now }, { integration, locationId }) => ({
    what: `It cannot be replayed: it arrived for ${integration}, but ${locationId} now uses ${now}`,
    toDo: [{ say: `${now} cannot read it. Check the order at the POS.` }],
  }),
  settings_sealed: ({ keyId }, about) => ({
    what: 'The settings of its location cannot be decrypted',
    details: [sealedWith(keyId)],
    toDo: [{ say: 'Add the key that encrypted them to SETTINGS_KEY. Or, if that key is lost:' }, storeAll(about)],
  }),
  settings_of_another: (_cause, about) => ({
    what: 'The settings of its location belong to another location',
    toDo: [{ say: 'Find out who changed the database directly.' }, storeAll(about)],
  }),
  credentials_sealed: ({ keyId }) => ({
    what: 'Its encrypted headers cannot be decrypted',
    details: [sealedWith(keyId)],
    toDo: [{ say: 'Add the key that was used when it arrived to SETTINGS_KEY.' }],
  }),
  sealed_for_another: () => ({
    what: 'Its encrypted headers belong to another webhook',
    toDo: [{ say: 'Find out who changed the database directly.' }],
  }),
  unknown_integration: ({ integration }) => ({
    what: `The service no longer has the integration ${integration}`,
    toDo: [{ say: 'Check that PROVIDER_MODULES of every process names its module.' }],
  }),
  wrong_settings: ({ issues }, about) => ({
    what: 'The settings of its location cannot be used',
    details: issues.map((issue) => `${issueInWords(issue)}.`),
    toDo: [
      { say: 'Read the schema of the settings:', run: commandsOf(about).schema },
      {
        say: 'Correct them: press Edit on the page of the location, or write only what changes to a file settings.json.',
        link: { name: `Settings of ${about.locationId}`, href: pageOf.location(about.locationId) },
        run: commandsOf(about).changeSettings,
      },
    ],
  }),
  no_public_url: () => ({
    what: 'The signed address is not known',
    toDo: [{ say: 'Set PUBLIC_URL of the service to the address that the POS calls.' }],
  }),
  postgres_gave_up: ({ sqlstate }) => ({
    what: 'The database was busy',
    details: [`Postgres aborted the replay with the code ${sqlstate}.`],
    toDo: [{ say: 'Try again.' }],
  }),
};

const ADD = { name: 'Add a location', href: '/console/locations/new' };

/** The settings cannot be read, so none of them can stay. */
function storeAll(about: About): Step {
  return {
    say:
      'Write all settings to a file settings.json, and store them again. Nothing of the old ones can be read: take the ' +
      'credentials from the POS, and everything else from your own records.',
    run: commandsOf(about).putSettings,
  };
}

function sealedWith(keyId: string): string {
  return `The key “${keyId}” is not in SETTINGS_KEY, or has another value there.`;
}

/** Explains to an operator why a webhook cannot be replayed. */
export function explainRefusal(
  { cause, refused }: { cause: { code: string }; refused: string },
  about: About,
): Explanation {
  return (
    explainBy(WORDS, cause, about, refused) ?? {
      what: NOT_REPLAYABLE,
      details: [`The service reports: ${refused}.`],
      toDo: [{ say: 'Show everything that is known about it:', run: `expediter webhook show ${about.webhookId}` }],
    }
  );
}
