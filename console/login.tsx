import { useState } from 'preact/hooks';
import { signInProblem, signInUrl } from './sign-in-elsewhere.ts';
import { hasOidc, logIn } from './sign-in.ts';
import { usePageTitle } from './parts/page.tsx';
import { useLoaded } from './parts/use-loaded.ts';

export function Login() {
  const ways = useLoaded(hasOidc, []);
  const [token, setToken] = useState('');
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  usePageTitle('Sign in');

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setProblem(undefined);
    if (/^["'].*["']$/.test(token.trim())) {
      setProblem('The token has quotation marks around it. Paste it without them.');
      return;
    }
    setBusy(true);
    try {
      if (!(await logIn(token.trim()))) setProblem('This is not a valid operator token. Check it and try again.');
    } catch (error) {
      setProblem(`You are not signed in: ${(error as Error).message}`);
    }
    setBusy(false);
  };

  // Waits for the sign-in methods, so that the form does not move.
  if (ways.value === undefined && ways.problem === undefined) return <main class="alone" aria-busy="true" />;
  return (
    <main class="alone">
      <form class="login" onSubmit={(event) => void submit(event)}>
        <h1>The pass</h1>
        {signInProblem !== undefined && <p class="problem">{signInProblem}</p>}
        {ways.value === true && (
          <a class="button primary" href={signInUrl()}>
            Sign in
          </a>
        )}
        <p id="token-hint">
          {ways.value === true ? 'Or sign in' : 'Sign in'} with an operator token. If you have none, ask an admin:
          admins make tokens on the page People. On the first day, it is the OPERATOR_TOKEN with which the service was
          started.
        </p>
        {!isSecureContext && (
          <p class="problem">
            This page was loaded by plain http, so the token would be sent unencrypted. Open it by https.
          </p>
        )}
        <label htmlFor="token">Operator token</label>
        <input
          id="token"
          type="password"
          autocomplete="current-password"
          required
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
          aria-describedby={problem === undefined ? 'token-hint' : 'token-hint token-problem'}
          aria-invalid={problem !== undefined}
        />
        <p id="token-problem" class="problem" role="alert">
          {problem}
        </p>
        <button type="submit" class={ways.value === true ? 'button' : 'button primary'} disabled={busy}>
          {ways.value === true ? 'Sign in with the token' : 'Sign in'}
        </button>
      </form>
    </main>
  );
}
