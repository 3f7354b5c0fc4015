/** Ways to take a webhook. `serve-variant.ts` implements each. */
export const VARIANTS = ['service', 'one-statement', 'naive', 'bare'] as const;
export type Variant = (typeof VARIANTS)[number];
