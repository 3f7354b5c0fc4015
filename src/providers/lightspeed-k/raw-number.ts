declare global {
  interface JSON {
    /** https://github.com/tc39/proposal-json-parse-with-source: V8 has it since 11.4, TypeScript's library not yet. */
    rawJSON(text: string): object;
  }
}

/** Makes a JSON number of exactly these digits for `JSON.stringify`: an int64 beyond 2^53, or an amount. */
export function rawNumber(digits: string): object {
  return JSON.rawJSON(digits);
}
