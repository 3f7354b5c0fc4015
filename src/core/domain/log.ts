/** The log that the core needs: pino's, or any with fields and a sentence. */
export type Log = {
  info(about: object, message: string): void;
  warn(about: object, message: string): void;
  error(about: object, message: string): void;
};
