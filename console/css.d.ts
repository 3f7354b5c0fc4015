/** Vite bundles these with the files that import them. */
declare module '*.css';
