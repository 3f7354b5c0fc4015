/**
 * Texts at the edges of JSON. The grammar is V8's; that its verdict becomes ours is what is tried. Where RFC 8259 leaves
 * it open, `taken` is what we do.
 */
export type JsonText = {
  text: string | Buffer;
  taken: boolean;
  /** Only as a whole document; the others are values and may stand inside another one, too. */
  whole?: true;
};

const good = (text: string): JsonText => ({ text, taken: true });
const bad = (text: string | Buffer): JsonText => ({ text, taken: false });
const whole = (text: JsonText): JsonText => ({ ...text, whole: true });
const utf16 = (text: string): Buffer => Buffer.from(text, 'utf16le');

export const JSON_TEXTS: readonly JsonText[] = [
  ...[' \t\r\n 1', '-0.5e+2', '1e400', '"\\ud83c\\udf55"', '"\\ud800"', '"\u2028"', '{"a":1,"a":2}'].map(good),
  good('{"__proto__":1}'),
  ...['NaN', '01', '.5', 'tru', "'a'", '"a', '"a\nb"', '"\\x41"', '[1,]', '{a:1}', '{"a":1,}', '/**/1'].map(bad),
  bad('1\u00a0'),
  ...['[1]', '{"a":1}', '"a"', 'null', '\ufeff{"a":1}'].map(good).map(whole),
  ...[' ', '\0', '{}{}', '[1],', '{"a":1}\0', '\ufeff\ufeff{"a":1}', utf16('{"a":1}')].map(bad).map(whole),
  ...[utf16('\ufeff{"a":1}'), utf16('\ufeff{"a":1}').swap16()].map(bad).map(whole),
];
