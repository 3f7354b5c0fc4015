/** The logger of core. Pino fits, and so does any logger that takes fields and a sentence. */
export type Log = {
  info(about: object, message: string): void;
  warn(about: object, message: string): void;
  error(about: object, message: string): void;
};
