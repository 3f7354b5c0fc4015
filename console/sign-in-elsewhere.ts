const PROBLEMS = new Map(
  Object.entries({
    not_allowed:
      'You are not allowed to sign in here. Ask the platform team to allow one of your groups, or the domain of your address. The log of the service names claims that could not be read.',
    no_role:
      'You have no role here yet. Ask an admin to give you one, then sign in again. The admin finds your sign-in in the audit.',
    expired: 'The sign-in took too long, or was started in another browser. Sign in again.',
    failed: 'The sign-in failed. Try again. If it fails again, read the log of the service.',
  }),
);

/** Why the issuer sent the operator back without a session. Undefined if nothing went wrong. */
export const signInProblem = takeProblem();

/** Reads the problem from the address and removes it there, because an address may be shared. */
function takeProblem(): string | undefined {
  const url = new URL(location.href);
  const problem = url.searchParams.get('problem');
  if (problem === null) return undefined;
  url.searchParams.delete('problem');
  history.replaceState(null, '', url);
  return PROBLEMS.get(problem);
}

/** The address that leads to the issuer, then back. @param again whether the issuer must authenticate them again */
export function signInUrl(again = false): string {
  const { pathname, search } = location;
  const asked = new URLSearchParams({ to: pathname + search, ...(again && { again: '1' }) });
  return `/console/session/oidc?${asked.toString()}`;
}
