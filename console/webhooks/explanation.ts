import type { WebhookAuth } from '../wire.ts';

/** What is wrong, and what to do about it, for whoever runs a club and has never seen the code. */
export type Explanation = {
  /** In one sentence. */
  what: string;
  /** What else is known, one sentence each. */
  details?: readonly string[];
  /** In this order. */
  toDo: readonly Step[];
};

export type Step = {
  say: string;
  /** The command that does it. */
  run?: string;
};

/** Whose webhook it is. */
export type About = {
  webhookId: string;
  locationId: string;
  integration: string;
  /** What its POS proves itself with, where the provider says so. */
  webhookAuth?: WebhookAuth | null;
};

/** What each code of a closed list means to people; `said` is the sentence that the service has for it. */
export type Words<Cause extends { code: string }> = {
  readonly [Code in Cause['code']]: (
    cause: Extract<Cause, { code: Code }>,
    about: About,
    said: string | null,
  ) => Explanation;
};

/** @returns undefined where there is no cause, or one of a newer service that this page does not know */
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
