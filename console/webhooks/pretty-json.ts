const INDENT = '  ';
/** The deepest indentation: 1 MB of brackets would become more than a page can hold. */
const DEEPEST = 20;

/**
 * Formats JSON with a line for each value, and every value unchanged: parsing and writing it would change numbers
 * beyond 2^53, which some POS systems use as ids, and drop duplicate fields.
 * @returns undefined if it is not JSON
 */
export function prettyJson(text: string): string | undefined {
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g) ?? [];
  const parts: string[] = [];
  let depth = 0;
  const line = (): string => `\n${INDENT.repeat(Math.min(depth, DEEPEST))}`;
  for (const [nth, token] of tokens.entries()) {
    const before = tokens[nth - 1] ?? '';
    if (token === '}' || token === ']') {
      depth -= 1;
      if (before !== '{' && before !== '[') parts.push(line());
    } else if (before === '{' || before === '[') parts.push(line());
    parts.push(token);
    if (token === '{' || token === '[') depth += 1;
    else if (token === ',') parts.push(line());
    else if (token === ':') parts.push(' ');
  }
  return parts.join('');
}
