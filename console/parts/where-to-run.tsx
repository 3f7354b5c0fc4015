export function WhereToRun() {
  return (
    <p class="faint">
      Run commands with the service's command line, <code>expediter</code>, in the environment of the service.
    </p>
  );
}
