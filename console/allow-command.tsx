import { useLocation } from 'preact-iso';
import { useState } from 'preact/hooks';
import { call } from './call.ts';
import { Page } from './parts/page.tsx';
import { session } from './sign-in.ts';
import { personName } from '../src/core/domain/describe-action.ts';

/** Asks whether `expediter login` on this machine may sign in. Only a click sends the browser to the command. */
export function AllowCommand() {
  const { port, challenge, state } = useLocation().query;
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const answer = async (allow: boolean): Promise<void> => {
    setBusy(true);
    try {
      const body = { port, challenge, state, allow };
      location.replace((await call<{ to: string }>('POST', '/console/session/command', { body })).to);
    } catch (error) {
      setProblem((error as Error).message);
      setBusy(false);
    }
  };
  return (
    <Page title="Sign in the command line">
      <p>
        The command line at <code>127.0.0.1:{port}</code>, on the machine of this browser, asks to sign in as{' '}
        <b>{session.value.state === 'in' && personName(session.value.name)}</b>. It printed the same port. Allow only if
        you started <code>expediter login</code> just now. If SSH forwards this port, you sign in the machine at its
        other end.
      </p>
      <p class="problem" role="alert">
        {problem}
      </p>
      <div class="buttons">
        <button type="button" class="primary" disabled={busy} onClick={() => void answer(true)}>
          Allow
        </button>
        <button type="button" disabled={busy} onClick={() => void answer(false)}>
          Refuse
        </button>
      </div>
    </Page>
  );
}
