const INDENT = '  ';
/** The deepest indentation: otherwise 1 MB of brackets would be too large for a page. */
const DEEPEST = 20;

/**
 * Formats JSON with a line for each value. Does not parse and write it, which would change numbers beyond 2^53 (some POS
 * systems use them as ids) and drop duplicate fields.
 * @returns undefined if the text is not JSON
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
