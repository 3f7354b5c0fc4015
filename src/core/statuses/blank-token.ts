/** Percent-encoding is undone as often as this: one URL may stand in another, and that in a third. */
const TIMES = 3;
const BLANK = '[token]';

/** Blanks our own token in a header, percent-encoded or not. Some proxies repeat the URL, and so the token. */
export function blankToken(value: string, token: string): string {
  let kept = value.includes(token) ? value.replaceAll(token, BLANK) : value;
  let text = kept;
  for (let nth = 0; nth < TIMES && text.includes('%'); nth += 1) {
    text = text.replace(/%([0-7][0-9a-f])/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    if (text.includes(token)) kept = text = text.replaceAll(token, BLANK);
  }
  return kept;
}

/**
 * Whether a body has our own token in it. Its longest run of letters and digits is looked for, which stays as it is
 * however a format encodes the `_` and `-` between them.
 */
export function holdsToken(body: Buffer, token: string): boolean {
  let run = '';
  for (const part of token.split(/[^A-Za-z0-9]/)) if (part.length > run.length) run = part;
  // guard: body-with-token
  return body.includes(run, 'latin1');
}
