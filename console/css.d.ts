/** Vite bundles each CSS file with the files that import it. */
declare module '*.css';
