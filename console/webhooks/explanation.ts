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
export type About = { webhookId: string; locationId: string; integration: string };

/** A text of the service's, and what it means to people; `found` are the rule's groups. */
export type Rule = readonly [text: RegExp, explain: (about: About, ...found: string[]) => Explanation];

/** By the first rule that knows the text. */
export function explainBy(rules: readonly Rule[], text: string, about: About): Explanation | undefined {
  for (const [pattern, explain] of rules) {
    const found = pattern.exec(text);
    if (found !== null) return explain(about, ...found.slice(1));
  }
  return undefined;
}
