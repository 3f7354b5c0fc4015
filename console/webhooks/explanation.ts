import type { WebhookAuth } from '../wire.ts';

/** What is wrong and what to do, for an operator who does not know the code. */
export type Explanation = {
  /** The problem in one sentence. */
  what: string;
  /** Details, one sentence each. */
  details?: readonly string[];
  toDo: readonly Step[];
};

export type Step = {
  say: string;
  /** The page on which the step is done. */
  link?: { name: string; href: string };
  /** The command for the step. */
  run?: string;
};

/** The webhook that is explained. */
export type About = {
  webhookId: string;
  locationId: string;
  integration: string;
  /** How its POS authenticates, if the provider declares it. */
  webhookAuth?: WebhookAuth | null;
};

/** Explanations by code. `said` is the service's sentence. */
export type Words<Cause extends { code: string }> = {
  readonly [Code in Cause['code']]: (
    cause: Extract<Cause, { code: Code }>,
    about: About,
    said: string | null,
  ) => Explanation;
};

/** @returns undefined without a cause, or for a cause that a newer service added */
export function explainBy<Cause extends { code: string }>(
  words: Words<Cause>,
  cause: { code: string } | null,
  about: About,
  said: string | null,
): Explanation | undefined {
  if (cause === null || !Object.hasOwn(words, cause.code)) return undefined;
  const explain: (cause: never, about: About, said: string | null) => Explanation = words[cause.code as Cause['code']];
  return explain(cause as never, about, said);
}
