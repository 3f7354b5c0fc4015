import { useState } from 'preact/hooks';
import { signInProblem, signInUrl } from './sign-in-elsewhere.ts';
import { hasOidc, logIn, session } from './sign-in.ts';
import { Form, Text } from './parts/form.tsx';
import { usePageTitle } from './parts/page.tsx';
import { Details } from './parts/said.tsx';
import { useLoaded } from './parts/use-loaded.ts';

const ENDED = 'Your session has ended: it expired, or an admin ended it or took your roles away.';

export function Login() {
  const ways = useLoaded(hasOidc, []);
  const [token, setToken] = useState('');
  const [refused, setRefused] = useState<string>();
  usePageTitle('Sign in');

  const submit = async (): Promise<boolean> => {
    const isRight = await logIn(token.trim()).catch((error: Error) => {
      throw new Error(`You are not signed in: ${error.message}`);
    });
    setRefused(isRight ? undefined : 'This is not a valid operator token. Check it and try again.');
    return isRight;
  };

  // Waits for the sign-in methods, so that the form does not move.
  if (ways.value === undefined && ways.problem === undefined) return <main class="alone" aria-busy="true" />;
  return (
    <main class="alone">
      <div class="login">
        <h1>The pass</h1>
        {signInProblem !== undefined && <p class="problem">{signInProblem}</p>}
        {session.value.state === 'out' && session.value.hasEnded && <p class="problem">{ENDED}</p>}
        {ways.value === true && (
          <a class="button primary" href={signInUrl()}>
            Sign in
          </a>
        )}
        {!isSecureContext && (
          <p class="problem">
            This page was loaded by plain http, so the token would be sent unencrypted. Open it by https.
          </p>
        )}
        <Form action={ways.value === true ? 'Sign in with the token' : 'Sign in'} onSubmit={submit}>
          <Text
            id="token"
            label="Operator token"
            hint={`${ways.value === true ? 'Or sign in' : 'Sign in'} with an operator token. If you have none, ask an admin: admins make tokens on the page People.`}
            isRequired
            type="password"
            autocomplete="current-password"
            problem={
              /^["'].*["']$/.test(token.trim())
                ? 'The token has quotation marks around it. Paste it without them.'
                : undefined
            }
            refused={refused}
            value={token}
            onWrite={setToken}
          />
        </Form>
        <div class="faint field-hint">
          On the first day, use the token with which the service was started.
          <Details>OPERATOR_TOKEN in the environment of the service</Details>
        </div>
      </div>
    </main>
  );
}
