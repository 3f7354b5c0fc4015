/** A module for `PROVIDER_MODULES`. */
export { findable as default } from './pos-without-deduplication.ts';
