import { defineConfig } from 'vite';
import { bundleNotices } from '../scripts/bundle-notices.ts';
import { precompress } from '../scripts/precompress.ts';

/** The console, as `npm run build:console` makes it: what the service serves under `/console`. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [bundleNotices(), precompress()],
  build: {
    outDir: '../dist/console',
    emptyOutDir: true,
    target: 'es2023',
    // The content security policy lets no data: URL through.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
