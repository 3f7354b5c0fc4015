#!/usr/bin/env node
import './require-node.ts';

// Imported after the check: an old Node fails while it links these modules.
const [{ report }, { buildProgram }] = await Promise.all([import('./cli/failures.ts'), import('./cli/program.ts')]);

// A reader may stop early, like `| head`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

try {
  await buildProgram().parseAsync();
} catch (error) {
  // process.exit would cut off output that a pipe has not taken yet.
  process.exitCode = report(error);
}
