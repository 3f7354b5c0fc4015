/**
 * Characters with which text from a POS or a platform could control the terminal or reorder its text: control
 * characters and characters of the bidirectional algorithm (https://www.unicode.org/reports/tr9/).
 */
const STEERING = /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu;
/** The same characters in a line of JSON. JSON already escapes characters below U+0020, and the final newline stays. */
const STEERING_IN_JSON = /[\u007f-\u009f\p{Bidi_Control}]/gu;

/** Replaces such characters with spaces. Newlines and tabs stay. */
export function terminalText(text: string): string {
  return text.replaceAll(STEERING, ' ');
}

/** Escapes such characters in JSON. The meaning of the JSON stays the same. */
export function terminalJson(json: string): string {
  return json.replaceAll(STEERING_IN_JSON, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
