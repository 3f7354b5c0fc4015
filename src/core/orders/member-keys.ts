/** Letters that no mark is taken off, separators, and capitals that `lower` leaves as they are with the collation "C". */
const FROM = 'øØłŁđĐðÐıæÆœŒßς-‐–_,./()"ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩАБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ';
const TO = 'oollddddiaaoosσ          αβγδεζηθικλμνξοπρστυφχψωабвгдежзиклмнопрстуфхцчшщъыьэюя';

/**
 * SQL of the words of a name, without case, marks and apostrophes: `Müller` is `muller`, as `Mueller` is, and `Groß` is
 * `gros`, as `Gross` is. Its length is limited before and after the letters are taken apart, as that of a key is.
 */
export const wordsOf = (name: string): string => `array_remove(string_to_array(left(regexp_replace(regexp_replace(
  lower(translate(regexp_replace(normalize(left(${name}, 200), NFKD) COLLATE "C", '[\\u0300-\\u036f''’]', '', 'g'),
    '${FROM}', '${TO}')), '([aou])e', '\\1', 'g'), 'ss', 's', 'g'), 200), ' '), '')`;

export const MEMBER_PHONE = `(contents #>> '{member,phone}') COLLATE "C"`;
export const PHONE_DIGITS = 7;
/** SQL of the keys by which a member is found, as in the index `order_contents_of_words`. */
export const KEYS = `(${wordsOf(`(contents #>> '{member,name}')`)} || ARRAY[right(${MEMBER_PHONE}, ${PHONE_DIGITS}),
  left(lower((contents #>> '{member,email}') COLLATE "C"), 200)])`;
