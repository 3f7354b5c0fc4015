import { defineConfig } from 'vitest/config';
import ordinary from './vitest.config.ts';

/** The tests that start processes, wait for real time-outs, or send thousands of hostile inputs. */
export default defineConfig({
  ...ordinary,
  test: {
    ...ordinary.test,
    include: ['test/process/**/*.test.ts'],
    exclude: [],
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
});
