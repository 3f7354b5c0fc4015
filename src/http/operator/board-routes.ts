import { isDeepStrictEqual } from 'node:util';
import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import type { Pool } from 'pg';
import { z } from 'zod';
import { Id } from '../../core/domain/order.ts';
import { membersOf } from '../../core/locations/locations.ts';
import { BoardComplete, BoardOrders, BoardReset } from '../../core/orders/board-feed.ts';
import { Attention } from '../../core/orders/sample-attention.ts';
import { failures } from './answers.ts';
import { locationsWithin } from './guard-routes.ts';
import { group } from '../../operators/requests.ts';
import { formatEvent, STREAM_HEADERS } from '../format-event.ts';
import { openStream, RECHECK_MS, writeBoardEvents, type EventStream, type Shared } from './event-stream.ts';
import type { OperatorDeps } from './operator-deps.ts';

const LiveQuery = z.strictObject({
  location: Id.optional().meta({ description: 'At this location.' }),
  group,
  integration: Id.optional().meta({ description: 'Sent through this integration last.' }),
});

/** An event, because a browser hides comments from its page, which must notice a connection that is dead. */
const HEARTBEAT = formatEvent({ event: 'heartbeat', data: {} });

/** Mounts `GET /live`: the board as server-sent events, with the orders of all processes. */
export function boardRoutes(scope: FastifyInstance, deps: OperatorDeps, shared: Shared): void {
  scope.withTypeProvider<ZodTypeProvider>().get(
    '/live',
    {
      exposeHeadRoute: false,
      schema: {
        operationId: 'followBoard',
        summary: 'The board: all current orders and everything that needs attention, updated live',
        description:
          'Server-sent events without ids. A reconnect sends the whole board again. `reset`: discard all orders. ' +
          '`orders`: some orders; each replaces an earlier one with its `serviceOrderId`. `complete`, once: you have ' +
          'the whole board. `attention`: the full list of what a person should check, sent when it changes. `heartbeat`: every 10 s. The ' +
          'board has orders that have not ended (at most 20,000) and orders that ended within 24 hours (the newest ' +
          '2,000, without erased members). It has no member data. An order that leaves your filter is sent once more.',
        querystring: LiveQuery,
        response: {
          200: {
            description: 'The stream.',
            content: {
              'text/event-stream': {
                schema: z.union([
                  asEvent('reset', BoardReset),
                  asEvent('orders', BoardOrders),
                  asEvent('complete', BoardComplete),
                  asEvent('attention', Attention),
                  asEvent('heartbeat', z.strictObject({})),
                ]),
              },
            },
          },
          ...failures(),
        },
      },
    },
    async (request, reply) => {
      const { location, group, integration } = request.query;
      const stream = openStream(scope, request, shared, HEARTBEAT);
      if (group !== undefined) stream.onClose(endIfChanged(stream, deps.pool, group, request.ofGroup));
      stream.onClose(
        deps.watch(
          { locations: locationsWithin(request), locationId: location, integration },
          writeBoardEvents(stream),
        ),
      );
      return reply.headers(STREAM_HEADERS).send(stream.body as never);
    },
  );
}

/** Ends the stream when the locations of its group have changed. Its reader then gets the new ones. */
function endIfChanged(stream: EventStream, pool: Pool, group: string, before: readonly string[] = []): () => void {
  const check = async (): Promise<void> => {
    const now = await membersOf(pool, group).catch(() => before);
    if (!isDeepStrictEqual(now, before)) stream.end();
  };
  const checking = setInterval(() => void check(), RECHECK_MS).unref();
  return () => clearInterval(checking);
}

function asEvent<Name extends string, Data extends z.ZodType>(event: Name, data: Data) {
  return z.object({ event: z.literal(event), data });
}
