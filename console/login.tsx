import { useState } from 'preact/hooks';
import { logIn } from './sign-in.ts';
import { usePageTitle } from './parts/page.tsx';

export function Login() {
  const [token, setToken] = useState('');
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  usePageTitle('Log in');

  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    try {
      if (!(await logIn(token.trim()))) setProblem('That is not the operator token of this service.');
    } catch (error) {
      setProblem(`You cannot be logged in: ${(error as Error).message}`);
    }
    setBusy(false);
  };

  return (
    <main class="alone">
      <form class="login" onSubmit={(event) => void submit(event)}>
        <h1>The pass</h1>
        <p id="token-hint">Log in with the operator token: the service has it as OPERATOR_TOKEN.</p>
        {!isSecureContext && (
          <p class="problem">This page came by plain http, and so would the token go: open it by https.</p>
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
        <button type="submit" class="primary" disabled={busy}>
          Log in
        </button>
      </form>
    </main>
  );
}
