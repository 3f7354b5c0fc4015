import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/system/**'],
    globalSetup: ['test/support/template-database.ts'],
    // Off Google's machines nobody need look for their metadata server.
    env: {
      METADATA_SERVER_DETECTION: 'none',
      // Processes that tests start, of which there are hundreds, need not strip and compile the same files each.
      NODE_COMPILE_CACHE: fileURLToPath(new URL('node_modules/.cache/node-compile', import.meta.url)),
    },
    pool: 'forks',
    // Twice what most small machines have of cores: the tests mostly wait.
    maxWorkers: 4,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
