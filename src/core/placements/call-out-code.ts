/**
 * The code by which staff call out an order, such as K472. No vowels, so that it spells nothing, and no characters that
 * look alike (0 O, 1 I, 2 Z, 5 S, 6 G, 8 B: the digits stay) or sound alike in a noisy room (M N, P T).
 *
 * It goes by the location's own count, so no two of as many orders in a row as there are codes have the same one. There
 * is no day to begin anew: midnight in UTC is somebody's supper, and the codes of the evening would come again.
 */
const LETTERS = 'FHKMRTWX';
const DIGITS = '23456789';

/** The number of codes: a power of two, which `mix` relies on. */
export const CODES = LETTERS.length * DIGITS.length ** 3;

/**
 * SQL that counts a code of the location: a row with `given` and `seed`. Orders of one location wait for each other
 * here, for as long as their statement takes.
 * @param locationId an SQL expression; a FROM clause follows
 */
export function countCode(locationId: string, from: string): string {
  return `INSERT INTO call_outs AS c (location_id) SELECT ${locationId} FROM ${from}
    ON CONFLICT (location_id) DO UPDATE SET given = c.given + 1
    RETURNING c.given, c.seed`;
}

/** SQL of the code, from columns `given` and `seed`. */
export const CODE_OF_COUNT = `(SELECT substr('${LETTERS}', (i >> 9) + 1, 1) || ${[6, 3, 0]
  .map((bits) => `substr('${DIGITS}', ((i >> ${bits}) & 7) + 1, 1)`)
  .join(' || ')} FROM (${mix()}) AS mixed(i))`;

/**
 * SQL that puts the counts in another order, so that a code does not tell how many orders there are. `a n + b n² + c` is a
 * permutation modulo a power of two where `a` is odd and `b` even (R. Rivest, Permutation polynomials modulo 2^w, 2001);
 * its last digit differs between any eight orders in a row. All three come from the seed.
 */
function mix(): string {
  const last = CODES - 1;
  const a = `(2 * ((seed >> 12) & 2047) + 1)`;
  const b = `(2 * (seed >> 23))`;
  return `SELECT ((seed & ${last}) + n * ((${a} + ${b} * n) & ${last})) & ${last} FROM (SELECT given & ${last}) AS each(n)`;
}
