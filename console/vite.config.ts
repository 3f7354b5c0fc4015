import { defineConfig } from 'vite';
import { bundleNotices } from '../tools/build/bundle-notices.ts';
import { precompress } from '../tools/build/precompress.ts';

/** The build of the console by `npm run build:console`, which the service serves under `/console`. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [bundleNotices(), precompress()],
  build: {
    outDir: '../dist/console',
    emptyOutDir: true,
    target: 'es2023',
    // The content security policy forbids data: URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // One file is smaller than twenty, and each page is drawn at once.
    cssCodeSplit: false,
    // So is one file of what several pages share: 8 kB less than thirty small ones.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'shared', minShareCount: 2 }] } } },
  },
});
