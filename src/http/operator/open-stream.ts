import { isDeepStrictEqual } from 'node:util';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { locationsOf, type Operator } from '../../core/operators/operator.ts';
import { eventStream, type EventStream } from './event-stream.ts';
import { operatorOf } from './guard-routes.ts';
import type { Shared } from './mount-routes.ts';

/** Streams of one process. Each holds a connection, and the board's some 200 kB if its reader is slow. */
const STREAMS_MAX = 200;
/** Those of all operators who have some locations alone, and of one of them: they leave room for the others. */
const OF_SOME_MAX = STREAMS_MAX / 2;
const OF_ONE_MAX = 40;

/** Time after which a stream's reader is looked at again: who may no longer read it is cut off within five seconds. */
const LOOK_MS = 2_000;

/**
 * Opens a stream, for either door, for as long as its reader may what they may now, and no longer than their session.
 * @throws 503 if there are too many
 */
export function openStream(
  scope: FastifyInstance,
  request: FastifyRequest,
  { closing, now, streams }: Shared,
): EventStream {
  const reader = operatorOf(request);
  const isOfSome = (each: Operator): boolean => locationsOf(each, 'viewer') !== null;
  const ofSome = [...streams.values()].filter(isOfSome);
  const own = ofSome.filter(({ kind, id }) => kind === reader.kind && id === reader.id);
  if (streams.size >= STREAMS_MAX || (isOfSome(reader) && (ofSome.length >= OF_SOME_MAX || own.length >= OF_ONE_MAX)))
    throw scope.httpErrors.serviceUnavailable('too many streams are open here: close one, or ask again soon');
  const stream = eventStream();
  streams.set(stream, reader);
  const look = async (): Promise<void> => {
    // Who cannot be asked for any more is nobody.
    const operator = await request.identifyAgain().catch(() => undefined);
    if (!isDeepStrictEqual(operator?.rights, reader.rights)) stream.cutOff();
  };
  const looking = setInterval(() => void look(), LOOK_MS).unref();
  const { session } = reader;
  const expiry = session && setTimeout(stream.cutOff, session.expiresAt.getTime() - now().getTime()).unref();
  stream.onClose(() => {
    streams.delete(stream);
    clearInterval(looking);
    clearTimeout(expiry);
  });
  // A stream requested before the shutdown is opened and ended: a refusal would stop an EventSource from reconnecting.
  if (closing.aborted) setImmediate(() => stream.end());
  return stream;
}
