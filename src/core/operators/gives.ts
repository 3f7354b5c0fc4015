/** Whether a right gives a `NeededRole`. The console uses it too, so this file loads nothing. */
export function gives({ roles }: { roles: readonly string[] }, role: string): boolean {
  // guard: metrics-reads-no-more
  if (role === 'any') return roles.some((each) => each !== 'metrics');
  // guard: integrator-reads-no-orders
  if (role === 'viewer') return roles.some((each) => each !== 'integrator' && each !== 'metrics');
  if (role === 'metrics') return roles.some((each) => each !== 'integrator');
  return roles.some((each) => role.split(' or ').includes(each));
}
