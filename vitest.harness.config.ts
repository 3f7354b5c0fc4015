import { defineConfig } from 'vitest/config';
import ordinary from './vitest.config.ts';

/** The tests of what tests and measures: the stand-ins, the benchmark, the harness of faults. For when one of them changes. */
export default defineConfig({
  ...ordinary,
  test: { ...ordinary.test, include: ['test/harness/**/*.test.ts'], exclude: [] },
});
