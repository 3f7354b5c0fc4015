import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { CancellationConcluded, concludeByPhone } from '../../core/cancellations/conclude-by-phone.ts';
import { CancellationRequested, requestCancellation } from '../../core/cancellations/request-cancellation.ts';
import { ListedOrders, listOrders } from '../../core/orders/list-orders.ts';
import { OrderStory, orderTimeline } from '../../core/orders/order-timeline.ts';
import { readChanges, readContents } from '../../core/orders/read-contents.ts';
import { readOrdered } from '../../core/orders/read-ordered.ts';
import { Resolved, resolveNotThere, resolveThere } from '../../core/placements/resolve-doubt.ts';
import { Retried, retryPlacement } from '../../core/placements/retry-placement.ts';
import { showOrder, withoutReasons } from '../../core/orders/show-order.ts';
import { traceId } from '../../core/domain/trace-id.ts';
import { failures, json } from './answers.ts';
import { conflict } from './conflict.ts';
import type { OperatorDeps } from './mount-routes.ts';
import { locationsWithin } from './guard-routes.ts';
import { noSuch } from './no-such.ts';
import { ConcludeCancel, OrderParams, OrderQuery, OrdersQuery, Resolve } from './order-requests.ts';

const tags = ['Orders'];

/**
 * - `GET /orders` a page of orders, newest first
 * - `GET /orders/:serviceOrderId` one order's whole story
 * - `POST /orders/:serviceOrderId/retry`, `/resolve` an operator's command about its placement
 * - `POST /orders/:serviceOrderId/cancel`, `/cancel/conclude` an operator's command about its cancel
 */
export function orderRoutes(scope: FastifyInstance, deps: OperatorDeps): void {
  const { pool } = deps;
  const api = scope.withTypeProvider<ZodTypeProvider>();
  const noSuchOrder = (): Error => scope.httpErrors.notFound(noSuch.order);

  api.get(
    '/orders',
    {
      schema: {
        operationId: 'listOrders',
        tags,
        summary: 'Orders by their first signal, newest first',
        description: 'Nothing about their members. Whatever is asked for, a page costs a bounded number of reads.',
        querystring: OrdersQuery,
        response: { 200: json('A page of orders.', ListedOrders), ...failures() },
      },
    },
    async (request) => {
      const { location, needs, limit, cursor, ...filter } = request.query;
      const found = await listOrders(
        pool,
        { ...filter, locations: locationsWithin(request, location), needsOperator: needs === 'operator' || undefined },
        { after: cursor, limit },
      );
      if (found === undefined) throw scope.httpErrors.badRequest('cursor: is not the `next` of a page');
      return found;
    },
  );

  api.get(
    '/orders/:serviceOrderId',
    {
      schema: {
        operationId: 'showOrder',
        tags,
        summary: "One order's whole story",
        description: 'Placement, attempts, POS ids, history, webhooks, live messages; and all of it as one timeline.',
        params: OrderParams,
        querystring: OrderQuery,
        response: { 200: json('The order.', OrderStory), ...failures(404) },
      },
    },
    async (request) => {
      const { serviceOrderId } = request.params;
      const found = await showOrder(pool, serviceOrderId);
      if (found === undefined) throw noSuchOrder();
      const shown = request.query.contents === true ? found : withoutReasons(found);
      const story = {
        ...shown,
        traceId: traceId(serviceOrderId),
        timeline: orderTimeline(shown),
        ...(request.query.ordered === true && { ordered: await readOrdered(pool, serviceOrderId) }),
      };
      if (request.query.contents !== true) return story;
      const changesInFull = await readChanges(pool, serviceOrderId);
      return { ...story, contents: await readContents(pool, serviceOrderId), changesInFull };
    },
  );

  api.post(
    '/orders/:serviceOrderId/retry',
    {
      schema: {
        operationId: 'retryOrder',
        tags,
        summary: 'Try a placement now',
        description:
          'One that waits or is held, or that failed before it was ever read. Any other that failed is final: the ' +
          'platform places a new order.',
        params: OrderParams,
        response: { 200: json('It is tried now.', Retried), ...failures(404, 409, 413, 415) },
      },
    },
    async (request) => {
      const { serviceOrderId } = request.params;
      const retried = await retryPlacement(pool, serviceOrderId);
      if (retried === undefined) throw noSuchOrder();
      if ('refused' in retried) throw conflict(retried);
      deps.wake();
      return retried;
    },
  );

  api.post(
    '/orders/:serviceOrderId/resolve',
    {
      schema: {
        operationId: 'resolveOrder',
        tags,
        summary: 'Say what you saw at the POS about an order in doubt',
        description:
          'The ticket is there, and the order goes on; or it is not, and it is sent again, or withdrawn if it is to be cancelled.',
        params: OrderParams,
        body: Resolve,
        response: { 200: json('It goes on.', Resolved), ...failures(404, 409, 413, 415) },
      },
    },
    async (request) => {
      const { serviceOrderId } = request.params;
      const { body } = request;
      const resolved = body.there
        ? await resolveThere(pool, serviceOrderId, body)
        : await resolveNotThere(pool, serviceOrderId);
      if (resolved === undefined) throw noSuchOrder();
      if ('refused' in resolved) throw conflict(resolved);
      deps.wake();
      return resolved;
    },
  );

  api.post(
    '/orders/:serviceOrderId/cancel',
    {
      schema: {
        operationId: 'cancelOrder',
        tags,
        summary: 'Have an order cancelled',
        description:
          'It is withdrawn, or its POS is asked to cancel it, also once more. Only when the POS says so is it cancelled.',
        params: OrderParams,
        response: { 200: json('It is being cancelled.', CancellationRequested), ...failures(404, 409, 413, 415) },
      },
    },
    async (request) => {
      const { serviceOrderId } = request.params;
      const requested = await requestCancellation(pool, serviceOrderId);
      if (requested === undefined) throw noSuchOrder();
      if ('refused' in requested) throw conflict(requested);
      deps.wake();
      return requested;
    },
  );

  api.post(
    '/orders/:serviceOrderId/cancel/conclude',
    {
      schema: {
        operationId: 'concludeCancel',
        tags,
        summary: 'Say what the restaurant said on the telephone about a cancel',
        description: 'It cancelled the order, and its member is told so; or it makes it all the same.',
        params: OrderParams,
        body: ConcludeCancel,
        response: { 200: json('The cancel is over.', CancellationConcluded), ...failures(404, 409, 413, 415) },
      },
    },
    async (request) => {
      const { serviceOrderId } = request.params;
      const { cancelled } = request.body;
      const concluded = await concludeByPhone(pool, serviceOrderId, cancelled);
      if (concluded === undefined) throw noSuchOrder();
      if ('refused' in concluded) throw conflict(concluded);
      deps.wake();
      return concluded;
    },
  );
}
