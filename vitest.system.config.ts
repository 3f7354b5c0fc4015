import { defineConfig } from 'vitest/config';
import ordinary from './vitest.config.ts';

/** What needs more than npm brings: Debian's packages. A missing tool is a failure, never skipped. */
export default defineConfig({
  test: {
    ...ordinary.test,
    include: ['test/system/**/*.test.ts'],
    exclude: [],
    // A browser or the building of an image keeps a core busy by itself.
    maxWorkers: 2,
    // The console in the browser is the one that is written now.
    globalSetup: ['world/postgres/template-database.ts', 'scripts/build-console.ts'],
    testTimeout: 120_000,
    hookTimeout: 600_000,
  },
});
