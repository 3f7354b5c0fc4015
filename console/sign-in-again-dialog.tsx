import { useState } from 'preact/hooks';
import { Confirm } from './parts/confirm.tsx';
import { askedAgain } from './sign-in-again.ts';
import { signInUrl } from './sign-in-elsewhere.ts';
import { findSession, logIn, session } from './sign-in.ts';

/** The dialog in which somebody signs in again. */
export function SignInAgainDialog() {
  const [token, setToken] = useState('');
  const { value } = session;
  const { close, proof = false } = askedAgain.value ?? {};
  if (close === undefined || value.state !== 'in') return null;
  const isPerson = value.kind === 'person';

  const goOn = async (): Promise<void> => {
    const isRight = isPerson ? findSession().then(() => isNewer(value.openedAt)) : logIn(token.trim());
    setToken('');
    if (!(await isRight)) {
      throw new Error(isPerson ? 'You have not signed in again yet.' : 'That is no operator token of this service.');
    }
    close(true);
  };
  return (
    <Confirm
      title="Sign in again"
      action="Go on"
      isReady={isPerson || token !== ''}
      onConfirm={goOn}
      onClose={() => close(false)}
    >
      <p>This needs a recent sign-in. What you were doing goes on here.</p>
      {isPerson ? (
        <p>
          <a href={signInUrl(proof)} target="_blank" rel="noreferrer">
            Sign in, in a new tab
          </a>
          , then come back to this one.
        </p>
      ) : (
        <p class="field">
          <label htmlFor="token-again">Operator token</label>
          <input
            id="token-again"
            type="password"
            autocomplete="current-password"
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        </p>
      )}
    </Confirm>
  );
}

function isNewer(than: string): boolean {
  return session.value.state === 'in' && Date.parse(session.value.openedAt) > Date.parse(than);
}
