const INDENT = '  ';
/** Whatever is deeper is no further to the right: 1 MB of brackets would become more than a page can hold. */
const DEEPEST = 20;

/**
 * JSON with a line for each value, but every one of them as it came: to parse and write it again would change numbers
 * beyond 2^53, which some POS have for ids, and drop what is there twice.
 * @returns undefined for what is no JSON
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
