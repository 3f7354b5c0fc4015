import fc from 'fast-check';

const [FIRST_SURROGATE, SURROGATES, LAST] = [0xd800, 0x800, 0x10ffff];

/**
 * Any code point but a half of a pair: what fast-check means by `binary`, which it takes a second to get ready for, since
 * it lists them all. It is told how to read a text back, so that its dangerous ones, such as `__proto__`, come as well.
 */
const character = fc.nat({ max: LAST - SURROGATES }).map(
  (nth) => String.fromCodePoint(nth < FIRST_SURROGATE ? nth : nth + SURROGATES),
  (text) => {
    const point = typeof text === 'string' && text.isWellFormed() ? text.codePointAt(0) : undefined;
    if (point === undefined || String.fromCodePoint(point) !== text) throw new Error('not one character');
    return point < FIRST_SURROGATE ? point : point - SURROGATES;
  },
);

export function anyText(constraints: { maxLength?: number } = {}): fc.Arbitrary<string> {
  return fc.string({ ...constraints, unit: character });
}
