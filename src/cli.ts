#!/usr/bin/env node
import './require-node.ts';

// After the check: an old Node fails while it links what these import.
const [{ report }, { buildProgram }] = await Promise.all([import('./cli/failures.ts'), import('./cli/program.ts')]);

// A reader may stop early, as "| head" does.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

try {
  await buildProgram().parseAsync();
} catch (error) {
  // process.exit would cut off output that is still to be written to a pipe.
  process.exitCode = report(error);
}
