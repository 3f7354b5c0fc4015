/**
 * Characters by which text from a POS or a platform could control the terminal or reorder its text: control characters,
 * and those of the bidirectional algorithm (https://www.unicode.org/reports/tr9/).
 */
const STEERING = /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu;
/** The same in JSON, where characters below a space are escaped already. The newline at its end stays. */
const STEERING_IN_JSON = /[\u007f-\u009f\p{Bidi_Control}]/gu;

/** Replaces these characters with spaces. Lines and tabs stay. */
export function terminalText(text: string): string {
  return text.replaceAll(STEERING, ' ');
}

/** Escapes these characters in JSON, which keeps its meaning. */
export function terminalJson(json: string): string {
  return json.replaceAll(STEERING_IN_JSON, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
