import { useState } from 'preact/hooks';
import { Choice } from '../parts/choice.tsx';
import { Copyable } from '../parts/copyable.tsx';
import { WhereToRun } from '../parts/where-to-run.tsx';
import type { ShownLocation } from '../wire.ts';
import { commandsOf } from './commands.ts';

/** Commands to copy, for what needs a secret and so is not done in the console. */
export function CommandLine({ location }: { location: ShownLocation }) {
  const [label, setLabel] = useState('');
  const [expires, setExpires] = useState('');
  const commands = commandsOf(location, { label, expires });
  return (
    <section class="sheet locations-commands" aria-labelledby="location-commands">
      <h2 id="location-commands">At the command line</h2>
      <p class="faint">Where secrets go in or come out, or much is lost at once.</p>
      <WhereToRun />

      <h3>Issue a token</h3>
      <p>Prints a token and the whole webhook address, this once. Earlier tokens stay valid until they are revoked.</p>
      <div class="filters">
        <div class="field">
          <label htmlFor="location-label">What it is for</label>
          <input
            id="location-label"
            placeholder="till, 2027"
            value={label}
            onInput={(event) => setLabel(event.currentTarget.value)}
          />
        </div>
        <Choice
          id="location-expires"
          label="Expires"
          value={expires}
          options={[
            ['', 'never'],
            ['30d', 'after 30 days'],
            ['90d', 'after 90 days'],
            ['365d', 'after a year'],
          ]}
          onChoose={setExpires}
        />
      </div>
      <Copyable label="the command that issues a token" text={commands.issueToken} />

      {location.knows.connect && (
        <>
          <h3>Connect</h3>
          <p>
            Registers the webhook at the POS, with a new token, as far as its API allows; says what is left to do by
            hand.
          </p>
          <Copyable label="the command that connects" text={commands.connect} />
        </>
      )}

      <h3>Put settings</h3>
      <p>
        Write all of them into a file <code>settings.json</code>: what is in it replaces all that there was; orders that
        are held for the location are tried at once. The schema says what there can be, <code>location show</code> what
        there is, without values.
      </p>
      <Copyable label="the command that puts settings" text={commands.putSettings} />
      <Copyable label="the command that shows the schema" text={commands.schema} />
      <Copyable label="the command that shows the location" text={commands.show} />

      <h3>Remove</h3>
      <p>
        Forgets the location with its settings and tokens. It has to be paused, and all its orders must have ended; they
        and their webhooks are kept.
      </p>
      <Copyable label="the command that removes it" text={commands.remove} />
    </section>
  );
}
