/** Says where the commands of a page work. */
export function WhereToRun() {
  return (
    <p class="faint">
      Run it where <code>expediter</code> is the service's command line, with the service's environment: docs/cli.md
      says how to get there.
    </p>
  );
}
