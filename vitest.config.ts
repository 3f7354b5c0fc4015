import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

/** The tests that run in a process of their own with a real Postgres. Their result does not depend on the machine's speed. */
export default defineConfig({
  resolve: {
    alias: {
      // Node resolves it with a hook of the service, which does not apply to what Vitest loads.
      'expediter-platform': fileURLToPath(new URL('src/platform-kit.ts', import.meta.url)),
      // The template uses the packed kit; tests use the kit's source.
      'expediter-kit/contract': fileURLToPath(
        new URL('packages/provider-kit/contract/provider-contract.ts', import.meta.url),
      ),
      'expediter-kit': fileURLToPath(new URL('src/provider-kit.ts', import.meta.url)),
    },
  },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/process/**', 'test/system/**', 'test/harness/**'],
    globalSetup: ['world/postgres/template-database.ts'],
    setupFiles: ['test/support/reset-module-state.ts'],
    env: {
      // Outside Google Cloud, nobody needs to look for its metadata server.
      METADATA_SERVER_DETECTION: 'none',
      // The many processes that tests start share one cache of compiled files.
      NODE_COMPILE_CACHE: fileURLToPath(new URL('node_modules/.cache/node-compile', import.meta.url)),
    },
    pool: 'forks',
    execArgv: ['end-with-vitest', ...(process.env['SLOW'] === undefined ? [] : ['slow-statements'])].flatMap((name) => [
      '--import',
      new URL(`test/support/${name}.ts`, import.meta.url).href,
    ]),
    // A worker evaluates a module once for all of its files. Files keep their own state and put back what they replace.
    isolate: false,
    // More than a small machine has cores: the tests also wait. A fourth worker costs more processor than time it saves.
    maxWorkers: 3,
    // Concurrent tests of one file mostly wait for a POS of their own.
    maxConcurrency: 10,
    // These only protect against hanging.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 60_000,
  },
});
