/** The log that the core needs: pino, or any other that takes fields and a sentence. */
export type Log = {
  info(about: object, message: string): void;
  warn(about: object, message: string): void;
  error(about: object, message: string): void;
};
