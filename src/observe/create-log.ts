import pg from 'pg';
import { pino, stdTimeFunctions, type DestinationStream, type Logger } from 'pino';
import { isDataError } from '../core/postgres/transactions.ts';

/** Google's name of each level: https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry#LogSeverity */
const SEVERITIES = new Map([
  ['trace', 'DEBUG'],
  ['debug', 'DEBUG'],
  ['info', 'INFO'],
  ['warn', 'WARNING'],
  ['error', 'ERROR'],
  ['fatal', 'CRITICAL'],
]);

/**
 * Makes the log: one JSON object a line. It must contain no secret and no member data. Only the method of a request is
 * logged, because the URL contains a token. An error in which Postgres may quote a value is logged without its message.
 * Google's log reads the fields `severity`, `message` and `time`. Other tools read `level`, pino's number.
 */
export function createLog(level: string, destination: DestinationStream): Logger {
  return pino(
    {
      level,
      messageKey: 'message',
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label, number) => ({ severity: SEVERITIES.get(label) ?? 'DEFAULT', level: number }) },
      serializers: { req: (request: { method?: string }) => ({ method: request.method }), err: serializeError },
    },
    destination,
  );
}

type SerializedError = { type: string; message: string; code?: string; stack?: string; cause?: SerializedError };

function serializeError(error: unknown): SerializedError {
  if (!(error instanceof Error)) return { type: typeof error, message: 'a value that is not an Error was thrown' };
  const message = isDataError(error) ? 'Postgres refuses a value' : error.message;
  const { code } = error as { code?: unknown };
  return {
    type: error instanceof pg.DatabaseError ? 'DatabaseError' : error.name,
    message,
    ...(typeof code === 'string' && { code }),
    // A stack contains the message, so the message is replaced there too.
    ...(error.stack !== undefined && { stack: error.stack.replace(error.message, message) }),
    ...(error.cause !== undefined && { cause: serializeError(error.cause) }),
  };
}
