import { useState } from 'preact/hooks';
import { Confirm } from './parts/confirm.tsx';
import { Text } from './parts/form.tsx';
import { askedAgain } from './sign-in-again.ts';
import { signInUrl } from './sign-in-elsewhere.ts';
import { findSession, logIn, session } from './sign-in.ts';

export function SignInAgainDialog() {
  const [token, setToken] = useState('');
  const { value } = session;
  const { close, proof = false } = askedAgain.value ?? {};
  if (close === undefined || value.state !== 'in') return null;
  const isPerson = value.kind === 'person';

  const confirm = async (): Promise<void> => {
    const isRight = isPerson ? findSession().then(() => isNewer(value.openedAt)) : logIn(token.trim());
    setToken('');
    if (!(await isRight)) {
      throw new Error(
        isPerson ? 'You have not signed in again yet.' : 'This is not a valid operator token. Check it and try again.',
      );
    }
    close(true);
  };
  return (
    <Confirm title="Sign in again" action="Continue" onConfirm={confirm} onClose={() => close(false)}>
      <p>This action needs a recent sign-in. Afterwards it continues here.</p>
      {isPerson ? (
        <p>
          <a href={signInUrl(proof)} target="_blank" rel="noreferrer">
            Sign in, in a new tab
          </a>
          , then come back to this one.
        </p>
      ) : (
        <Text
          id="token-again"
          label="Operator token"
          isRequired
          type="password"
          autocomplete="current-password"
          value={token}
          onWrite={setToken}
        />
      )}
    </Confirm>
  );
}

function isNewer(than: string): boolean {
  return session.value.state === 'in' && Date.parse(session.value.openedAt) > Date.parse(than);
}
