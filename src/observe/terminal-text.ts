/**
 * Text from a POS or a platform must not steer the terminal it is shown in, nor turn the order of what stands there
 * around: control characters, and those of the bidirectional algorithm (https://www.unicode.org/reports/tr9/).
 */
const STEERING = /(?![\n\t])[\p{Cc}\p{Bidi_Control}]/gu;
/** The same in JSON, where those below a space are escaped already, but for the newline behind it. */
const STEERING_IN_JSON = /[\u007f-\u009f\p{Bidi_Control}]/gu;

/** Returns text for people: lines and tabs stay, and what steers becomes a space. */
export function terminalText(text: string): string {
  return text.replaceAll(STEERING, ' ');
}

/** Returns JSON that means the same, with every character escaped that steers. */
export function terminalJson(json: string): string {
  return json.replaceAll(STEERING_IN_JSON, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
