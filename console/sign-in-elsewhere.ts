const PROBLEMS: Readonly<Record<string, string>> = {
  not_allowed:
    'You may not sign in here: ask the platform team to let in a group of yours, or the domain of your address.',
  no_role: 'You have no role here yet: ask an admin to give you one, then sign in again. They find you in the audit.',
  expired: 'That took too long, or was begun in another browser: sign in again.',
  failed: 'The sign-in did not work: try again. If it stays so, the log of the service says why.',
};

/** Why somebody came back from the issuer without a session, in words. Undefined if nothing went wrong. */
export const signInProblem = takeProblem();

/** Out of the address, which may be shared. */
function takeProblem(): string | undefined {
  const url = new URL(location.href);
  const problem = url.searchParams.get('problem');
  if (problem === null) return undefined;
  url.searchParams.delete('problem');
  history.replaceState(null, '', url);
  return PROBLEMS[problem];
}

/** Leads to the issuer, and back to this page. @param again for somebody who is signed in */
export function signInUrl(again = false): string {
  const { pathname, search } = location;
  const asked = new URLSearchParams({ to: pathname + search, ...(again && { again: '1' }) });
  return `/console/session/oidc?${asked.toString()}`;
}
