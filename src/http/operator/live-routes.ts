import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { LiveMessage } from '../../core/domain/live-message.ts';
import { readLive } from '../../core/live/read-live.ts';
import { failures } from './answers.ts';
import { locationsWithin } from './guard-routes.ts';
import { STREAM_HEADERS } from '../format-event.ts';
import { openStream, type Shared } from './event-stream.ts';
import type { OperatorDeps } from './operator-deps.ts';
import { noSuch } from '../../operators/operation.ts';
import { OrderParams } from '../../operators/requests.ts';

const Resume = z.looseObject({
  'last-event-id': z
    .string()
    .regex(/^\d{1,9}$/, { error: 'must be the `id` of an event' })
    .transform(Number)
    .optional()
    .meta({ description: 'The `id` of the last event you received. The stream continues after it.', examples: ['3'] }),
});

/** Mounts `GET /orders/:serviceOrderId/live`: an order's live messages from all processes, as server-sent events. */
export function liveRoutes(scope: FastifyInstance, deps: OperatorDeps, shared: Shared): void {
  scope.withTypeProvider<ZodTypeProvider>().get(
    '/orders/:serviceOrderId/live',
    {
      exposeHeadRoute: false,
      schema: {
        operationId: 'followOrder',
        summary: "An order's live messages, as they happen",
        description:
          'Server-sent events. Each `orderStatusChanged` has the sequence as its `id`. Its `data` is a LiveMessage ' +
          'as on the status topic, but without `reason`. The stream begins with the first message, or after ' +
          '`Last-Event-ID`. After the last message, `end` is sent and the stream closes.',
        params: OrderParams,
        headers: Resume,
        response: {
          200: {
            description: 'The stream.',
            content: {
              'text/event-stream': {
                schema: z.string().meta({
                  examples: ['id: 1\nevent: orderStatusChanged\ndata: {"serviceOrderId":"order-4711",…}\n\n'],
                }),
              },
            },
          },
          204: z
            .undefined()
            .describe('The order has ended, and you have all its messages. An EventSource will not reconnect.'),
          ...failures(404),
        },
      },
    },
    async (request, reply) => {
      const { serviceOrderId } = request.params;
      const last = request.headers['last-event-id'];
      const read = (await readLive(deps.pool, new Map([[serviceOrderId, last ?? 0]]))).get(serviceOrderId);
      if (read === undefined) throw scope.httpErrors.notFound(noSuch.order);
      if (last !== undefined && read.ended && read.messages.length === 0) return reply.code(204).send(undefined);

      const locations = locationsWithin(request);
      const stream = openStream(scope, request, shared);
      let sent = last ?? 0;
      const send = ({ messages, ended }: { messages: LiveMessage[]; ended: boolean }): void => {
        for (const message of messages) {
          // An order that was not sent to a POS yet may have moved to a location that the reader may not see.
          if (locations?.includes(message.locationId ?? '') === false) return stream.cutOff();
          sent = message.sequence;
          const { reason: _ofThePos, ...data } = message;
          stream.send({ id: sent, event: 'orderStatusChanged', data });
        }
        if (!ended) return;
        stream.send({ event: 'end', data: { sequence: sent } });
        stream.end();
      };
      send(read);
      const unfollow = read.ended ? () => {} : deps.follow(serviceOrderId, sent, (news) => news && send(news));
      stream.onClose(unfollow);
      return reply.headers(STREAM_HEADERS).send(stream.body as never);
    },
  );
}
