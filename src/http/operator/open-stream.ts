import type { FastifyInstance } from 'fastify';
import { eventStream, type EventStream } from './event-stream.ts';
import type { Shared } from './mount-routes.ts';

/** Of one process; each holds a connection, and of the board's some 200 kB where its reader is slow. */
const STREAMS_MAX = 200;

/** Opens one more stream, through whichever door. @throws 503 when there is no room */
export function openStream(scope: FastifyInstance, { closing, streams }: Shared): EventStream {
  if (streams.size >= STREAMS_MAX)
    throw scope.httpErrors.serviceUnavailable('too many streams are open here: close one, or ask again soon');
  const stream = eventStream();
  streams.add(stream);
  stream.onClose(() => void streams.delete(stream));
  // It was asked for before that. A refusal would tell an EventSource not to come back.
  if (closing.aborted) setImmediate(() => stream.end());
  return stream;
}
