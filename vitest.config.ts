import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** What all projects have in common. The file paths of a project's setup are those of this folder. */
export default defineConfig({
  resolve: {
    alias: {
      // Node resolves it with a hook of the service, which does not apply to what Vitest loads.
      'expediter-platform': here('src/platform-kit.ts'),
      // The template uses the packed kit; tests use the kit's source.
      'expediter-kit/contract': here('packages/provider-kit/contract/provider-contract.ts'),
      'expediter-kit': here('src/provider-kit.ts'),
    },
  },
  test: {
    globalSetup: ['world/postgres/template-database.ts'],
    setupFiles: ['test/support/reset-module-state.ts'],
    env: {
      // Outside Google Cloud, nobody needs to look for its metadata server.
      METADATA_SERVER_DETECTION: 'none',
      // The many processes that tests start share one cache of compiled files.
      NODE_COMPILE_CACHE: here('node_modules/.cache/node-compile'),
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
    projects: [
      {
        extends: true,
        test: {
          // `npm test`: they run in a process of their own with a real Postgres, and hold on a machine of any speed.
          name: 'tests',
          include: ['test/**/*.test.ts'],
          exclude: ['test/{process,system,harness}/**'],
        },
      },
      {
        extends: true,
        test: {
          // They start processes, wait for real time-outs, or send thousands of hostile inputs.
          name: 'process',
          include: ['test/process/**/*.test.ts'],
          testTimeout: 240_000,
          hookTimeout: 240_000,
        },
      },
      {
        extends: true,
        test: {
          // Of what tests and measures: the stand-ins, the benchmark, the harness of faults. For when one of them changes.
          name: 'harness',
          include: ['test/harness/**/*.test.ts'],
        },
      },
      {
        extends: true,
        test: {
          // They need more than npm brings: Debian's packages. A missing tool is a failure, never skipped.
          name: 'system',
          include: ['test/system/**/*.test.ts'],
          // The console in the browser is the one that is written now.
          globalSetup: ['tools/build/build-console.ts'],
          // A browser or the building of an image keeps a core busy by itself.
          maxWorkers: 2,
          hookTimeout: 600_000,
        },
      },
    ],
  },
});
