import pg from 'pg';
import { pino, stdTimeFunctions, type DestinationStream, type Logger } from 'pino';
import { isDataError } from './core/postgres/is-data-error.ts';

/** https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry#LogSeverity */
const SEVERITIES: Record<string, string> = {
  trace: 'DEBUG',
  debug: 'DEBUG',
  info: 'INFO',
  warn: 'WARNING',
  error: 'ERROR',
  fatal: 'CRITICAL',
};

/**
 * The log: one JSON object a line, without what must not be in it. A request's URL holds its token, so a request is its
 * method alone. Postgres quotes rows and values in its errors, and so a member's data: of those the code is enough.
 * Its names are those that Google's log reads without being told: `severity`, `message`, `time`; the level's number
 * stays for everybody else's tools.
 * @param destination standard output, unless a test reads along
 */
export function createLog(level: string, destination: DestinationStream = standardOutput()): Logger {
  return pino(
    {
      level,
      messageKey: 'message',
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label, number) => ({ severity: SEVERITIES[label] ?? 'DEFAULT', level: number }) },
      serializers: { req: (request: { method?: string }) => ({ method: request.method }), err: serializeError },
    },
    destination,
  );
}

/**
 * All lines of a turn of the event loop in one write, which costs more than the lines do; so none is held back for
 * longer than a turn. Not pino's own buffer: with a log whose reader has gone, its flush at the exit never ends.
 */
function standardOutput(): DestinationStream {
  const output = pino.destination({ fd: 1, sync: true });
  let lines = '';
  const flush = (): void => {
    if (lines === '') return;
    output.write(lines);
    lines = '';
  };
  process.once('exit', flush);
  return {
    write(line) {
      if (lines === '') setImmediate(flush);
      lines += line;
    },
  };
}

type SerializedError = { type: string; message: string; code?: string; stack?: string; cause?: SerializedError };

function serializeError(error: unknown): SerializedError {
  if (!(error instanceof Error)) return { type: typeof error, message: 'something that is no Error was thrown' };
  const message = isDataError(error) ? 'Postgres refuses a value' : error.message;
  const { code } = error as { code?: unknown };
  return {
    type: error instanceof pg.DatabaseError ? 'DatabaseError' : error.name,
    message,
    ...(typeof code === 'string' && { code }),
    // The first line of a stack is the message.
    ...(error.stack !== undefined && { stack: error.stack.replace(error.message, message) }),
    ...(error.cause !== undefined && { cause: serializeError(error.cause) }),
  };
}
