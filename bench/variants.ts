/** Ways to take a webhook. What each of them does stands where it is served. */
export const VARIANTS = ['service', 'one-statement', 'naive', 'bare'] as const;
export type Variant = (typeof VARIANTS)[number];
