declare global {
  interface JSON {
    /** https://github.com/tc39/proposal-json-parse-with-source, in V8 since 11.4 and not in TypeScript's library yet. */
    rawJSON(text: string): object;
  }
}

/** A JSON number of exactly these digits, for `JSON.stringify`: an int64 beyond 2^53, or an amount. */
export function rawNumber(digits: string): object {
  return JSON.rawJSON(digits);
}
