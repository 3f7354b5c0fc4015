/** Vite takes these along with whatever imports them. */
declare module '*.css';
