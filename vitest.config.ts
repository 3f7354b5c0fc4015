import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What mostly waits, and longest; nothing tells of it where no run has been before. */
const LONGEST = [
  'demo/demo',
  'process',
  'core/placements/forward-journey',
  'core/placements/silent-vendor',
  'core/cancellations/cancels-in-any-order',
  'http/operator/board-routes',
  'core/retention/retention',
  'cli/cli',
  'certify/certify',
  'hostile/webhook',
  'hostile/push',
  'demo/certify-bridge',
  'core/spill/spill',
  'http/webhook-wire',
  'core/statuses/locked-rows',
];
const TESTS = fileURLToPath(new URL('test/', import.meta.url));

/** Vitest begins with what took longest the last time. These come first the first time, too. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean =>
      LONGEST.some((name) => moduleId === `${TESTS}${name}.test.ts`);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  resolve: {
    alias: {
      // Node finds it by a hook of the service's, which is not asked for what Vitest loads.
      'expediter/platform': fileURLToPath(new URL('src/platform-kit.ts', import.meta.url)),
      // The template has the kit as it is packed; here it is what the kit is packed of.
      'expediter-kit/contract': fileURLToPath(new URL('test/providers/provider-contract.ts', import.meta.url)),
      'expediter-kit': fileURLToPath(new URL('src/provider-kit.ts', import.meta.url)),
    },
  },
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/system/**', 'test/harness/**'],
    globalSetup: ['test/support/template-database.ts'],
    // Off Google's machines nobody need look for their metadata server.
    env: {
      METADATA_SERVER_DETECTION: 'none',
      // Processes that tests start, of which there are hundreds, need not strip and compile the same files each.
      NODE_COMPILE_CACHE: fileURLToPath(new URL('node_modules/.cache/node-compile', import.meta.url)),
    },
    pool: 'forks',
    // What files import is evaluated once a worker: their own state is theirs, and what they replace they put back.
    isolate: false,
    sequence: { sequencer: LongestFirst },
    // Twice what most small machines have of cores: the tests mostly wait. More would be a little sooner done, and some
    // that time things then fail beside anything else.
    maxWorkers: 4,
    // Of claims in one file that are looked at together: each mostly waits for a POS of its own.
    maxConcurrency: 10,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
