import { useState } from 'preact/hooks';
import { Choice } from '../parts/choice.tsx';
import { Copyable } from '../parts/copyable.tsx';
import { WhereToRun } from '../parts/where-to-run.tsx';
import type { ShownLocation } from '../wire.ts';
import { commandsOf } from './commands.ts';

/** Commands to copy, for actions that need a secret and are not done in the console. */
export function CommandLine({ location }: { location: ShownLocation }) {
  const [label, setLabel] = useState('');
  const [expires, setExpires] = useState('');
  const commands = commandsOf(location, { label, expires });
  return (
    <section class="sheet locations-commands" aria-labelledby="location-commands">
      <h2 id="location-commands">At the command line</h2>
      <p class="faint">For actions that use secrets, or delete much at once.</p>
      <WhereToRun />

      <h3>Issue a token</h3>
      <p>
        Prints a token and the full webhook address. They are shown only once. Earlier tokens stay valid until you
        revoke them.
      </p>
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
            Registers the webhook at the POS with a new token, if its API allows that. Then it lists what remains to do
            by hand.
          </p>
          <Copyable label="the command that connects" text={commands.connect} />
        </>
      )}

      <h3>Put settings</h3>
      <p>
        Write all settings to a file <code>settings.json</code>. They replace all earlier settings, and held orders of
        the location are retried at once. The schema describes all settings. <code>location show</code> lists the
        current ones without values.
      </p>
      <Copyable label="the command that puts settings" text={commands.putSettings} />
      <Copyable label="the command that shows the schema" text={commands.schema} />
      <Copyable label="the command that shows the location" text={commands.show} />

      <h3>Remove</h3>
      <p>
        Removes the location with its settings and tokens. First pause it and wait until all its orders have ended.
        Orders and webhooks stay stored.
      </p>
      <Copyable label="the command that removes it" text={commands.remove} />
    </section>
  );
}
