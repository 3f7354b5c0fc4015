import { expect, it } from 'vitest';
import { printable, terminalText } from '../../src/observe/terminal-text.ts';

/** What cannot be seen in an id, or steers what shows it. */
const UNPRINTED = {
  'a control character': ['\u0000', '\u001b', '\u007f', '\u009b'],
  'a bidi override': ['\u202e', '\u2066', '\u200f', '\u061c'],
  'a zero-width character': ['\u200b', '\u200d', '\u2060', '\ufeff', '\u00ad'],
  'a line separator': ['\u2028', '\u2029'],
  'an invisible tag': ['\u{e0041}'],
};

it.each(Object.entries(UNPRINTED))(
  '%s in an id of a POS is shown escaped, and JSON with it stays equal',
  (_what, chars) => {
    for (const char of chars) {
      const id = `T-1${char}23`;
      expect(printable(id)).toMatch(/^T-1(\\u[0-9a-f]{4}){1,2}23$/);
      expect(terminalText(id)).toBe(printable(id));
      expect(JSON.parse(terminalText(JSON.stringify({ id })))).toEqual({ id });
    }
  },
);

it('ids that differ only in invisible characters are shown differently', () => {
  const shown = ['T-1', 'T-1\u200b', '\u200bT-1', 'T-1\n', 'T-1\t'].map(printable);
  expect(new Set(shown.map((each) => each.trim())).size).toBe(shown.length);
});

it('letters of any language, line ends and tabs stay as they are', () => {
  for (const text of ['Käse 日本 عربى 🍕 #12/3', '{"a":\n\t1}']) expect(terminalText(text)).toBe(text);
});
