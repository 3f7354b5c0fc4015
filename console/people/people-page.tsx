import { useState } from 'preact/hooks';
import { AskButton } from '../parts/ask-button.tsx';
import { may } from '../may.ts';
import { announce } from '../parts/announce.ts';
import { Confirm } from '../parts/confirm.tsx';
import { Page } from '../parts/page.tsx';
import { logOut, session } from '../sign-in.ts';
import { GivenRoles } from './given-roles.tsx';
import { NamedTokens } from './named-tokens.tsx';
import './people.css';
import { rightInWords } from './right-in-words.ts';
import type { Draft } from './right-of.ts';
import { OthersSessions, OwnSessions } from './sessions.tsx';
import { personName } from '../../src/core/domain/describe-action.ts';

/** Shows the operator's own sessions. Shows an admin also the roles, the tokens and all sessions. */
export function PeoplePage() {
  const [isAsked, setChosen] = useState(false);
  const [wanted, setWanted] = useState<Draft>();
  if (session.value.state !== 'in') return null;
  const { rights, kind } = session.value;
  const name = personName(session.value.name);
  const everywhere = async (): Promise<void> => {
    await logOut(true);
    announce('You are signed out everywhere');
  };
  return (
    <Page title="People" beside={<AskButton onClick={() => setChosen(true)}>Sign me out everywhere</AskButton>}>
      <section class="sheet" aria-labelledby="people-you">
        <h2 id="people-you">You</h2>
        <p>
          You are <b>{name}</b>, with these roles:
        </p>
        <ul>
          {rights.map((right) => (
            <li key={rightInWords(right)}>{rightInWords(right)}</li>
          ))}
        </ul>
        {kind === 'operator_token' && (
          <p class="faint">
            Everybody who has this token is “{name}” in the audit. Make a named token for each of them.
          </p>
        )}
        {!may('admin', { anywhere: true }) && <p class="faint">To get more roles, ask an administrator.</p>}
        <OwnSessions />
      </section>
      {may('admin', { anywhere: true }) && (
        <>
          <GivenRoles onToken={setWanted} />
          <NamedTokens wanted={wanted} onWant={setWanted} />
        </>
      )}
      {may('admin', null) && <OthersSessions />}
      {isAsked && (
        <Confirm
          title="Sign you out everywhere?"
          action="Sign me out everywhere"
          isDangerous
          onConfirm={everywhere}
          onClose={() => setChosen(false)}
        >
          <p>All your sessions as {name} end within 5 s, including this one. Other people stay signed in.</p>
        </Confirm>
      )}
    </Page>
  );
}
