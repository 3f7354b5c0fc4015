/** What the core asks of a log: pino's, or any that takes fields and a sentence. */
export type Log = {
  info(about: object, message: string): void;
  warn(about: object, message: string): void;
  error(about: object, message: string): void;
};
