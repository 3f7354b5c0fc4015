#!/usr/bin/env node
import './require-node.ts';

// Imported dynamically, after the check of Node's version, because an old Node fails when it links these modules.
const [{ report }, { buildProgram }] = await Promise.all([
  import('./terminal/failures.ts'),
  import('./cli/program.ts'),
]);

// A reader such as `| head` may close the pipe early. This is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

try {
  await buildProgram().parseAsync();
} catch (error) {
  // process.exit would lose output that is not yet written to a pipe.
  process.exitCode = report(error);
}
