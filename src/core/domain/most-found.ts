/** A search finds at most this many of each kind. */
export const MOST_FOUND = 25;
