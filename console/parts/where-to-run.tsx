export function WhereToRun() {
  return (
    <p class="faint">
      Run it with the command line of the service, <code>expediter</code>, in the environment of the service. See
      docs/cli.md.
    </p>
  );
}
