import type { FastifyInstance } from 'fastify';
import { eventStream, type EventStream } from './event-stream.ts';
import type { Shared } from './mount-routes.ts';

/** Streams of one process. Each holds a connection, and the board's some 200 kB if its reader is slow. */
const STREAMS_MAX = 200;

/** Opens a stream, for either door. @throws 503 if there are too many */
export function openStream(scope: FastifyInstance, { closing, streams }: Shared): EventStream {
  if (streams.size >= STREAMS_MAX)
    throw scope.httpErrors.serviceUnavailable('too many streams are open here: close one, or ask again soon');
  const stream = eventStream();
  streams.add(stream);
  stream.onClose(() => void streams.delete(stream));
  // A stream requested before the shutdown is opened and ended: a refusal would stop an EventSource from reconnecting.
  if (closing.aborted) setImmediate(() => stream.end());
  return stream;
}
