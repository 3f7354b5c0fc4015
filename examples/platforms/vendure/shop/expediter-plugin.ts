/** Vendure's side of Expediter: signals each order that is paid (settled), changed or cancelled, and takes the statuses. */
import { Controller, Headers, HttpCode, Post, Req, UnauthorizedException } from '@nestjs/common';
import type { OnApplicationBootstrap } from '@nestjs/common';
import { HistoryEntryType } from '@vendure/common/lib/generated-types';
import { DEFAULT_CHANNEL_CODE } from '@vendure/common/lib/shared-constants';
import {
  EventBus,
  HistoryService,
  isGraphQlErrorResult,
  type JobQueue,
  JobQueueService,
  manualFulfillmentHandler,
  Order,
  OrderEvent,
  OrderLineEvent,
  OrderService,
  OrderStateTransitionEvent,
  PluginCommonModule,
  RequestContextService,
  TransactionalConnection,
  VendurePlugin,
  type FulfillmentState,
  type RequestContext,
} from '@vendure/core';
import { raw } from 'express';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { Column, Entity, PrimaryColumn } from 'typeorm';

export type ExpediterOptions = {
  /** Expediter's `/signal`, with `?token=…` of `expediter signal-token issue`. */
  signalUrl: string;
  /** Expediter's STATUS_WEBHOOK_SECRET. Its STATUS_WEBHOOK_URL is `<this server>/expediter/statuses`. */
  statusSecret: string;
};

const ROUTE = '/expediter/statuses';
const QUEUE = 'expediter-signals';
/** About four months of one retry a second: a job that ran out of retries would be a lost signal. */
const RETRIES = 10_000_000;

/** The number of the last status of each order, so that a repeat or an old one changes nothing. */
@Entity('expediter_status')
export class ExpediterStatus {
  @PrimaryColumn()
  orderCode!: string;
  @Column({ default: 0 })
  sequence!: number;
}

/** What is read of a status message. */
type Status = {
  serviceOrderId: string;
  sequence: number;
  memberState: string;
  reason?: string;
  trackingUrl?: string;
  /** `requested` or `refused`: what became of a cancel. */
  cancellation?: string;
  /** `not_applied` until the restaurant has answered what becomes of a change. */
  change?: string;
};

/** The state of the fulfilment in each state of the member that has one. Vendure moves the order with it. */
const FULFILLMENT = new Map<string, FulfillmentState>([
  ['ready_for_pickup', 'Pending'],
  ['ready_for_delivery', 'Pending'],
  ['out_for_delivery', 'Shipped'],
  ['picked_up', 'Delivered'],
  ['delivered', 'Delivered'],
]);
const PROGRESS = ['Pending', 'Shipped', 'Delivered'];
/**
 * While staff change an order. It is signalled at the end, and its statuses wait: Expediter sends a message again until the
 * answer is 2xx.
 */
const IN_CHANGE = ['Modifying', 'ArrangingAdditionalPayment'];

@Controller(ROUTE)
export class StatusController {
  constructor(
    private connection: TransactionalConnection,
    private contexts: RequestContextService,
    private orders: OrderService,
    private history: HistoryService,
  ) {}

  @Post()
  @HttpCode(204)
  async receive(@Req() { body }: { body: Buffer }, @Headers() headers: Record<string, string>): Promise<void> {
    const { type, data } = this.verify(body, headers);
    if (type !== 'expediter.order.status-changed.v1') return;
    const { serviceOrderId: code } = data;
    const order = await this.connection.rawConnection
      .getRepository(Order)
      .findOne({ where: { code }, relations: { channels: true } });
    if (order === null) return;
    const channel = order.channels.find((each) => each.code !== DEFAULT_CHANNEL_CODE) ?? order.channels[0];
    const context = await this.contexts.create({ apiType: 'admin', channelOrToken: channel?.token });
    // The number and its effect are in one transaction: after an error, the same message is no repeat.
    await this.connection.withTransaction(context, async (ctx) => {
      const statuses = this.connection.getRepository(ctx, ExpediterStatus);
      await statuses.createQueryBuilder().insert().values({ orderCode: code }).orIgnore().execute();
      const lock = { mode: 'pessimistic_write' } as const;
      const last = await statuses.findOneOrFail({ where: { orderCode: code }, lock });
      if (data.sequence <= last.sequence) return;
      await this.apply(ctx, data);
      await statuses.update(code, { sequence: data.sequence });
    });
  }

  private verify(body: Buffer, headers: Record<string, string>): { type: string; data: Status } {
    try {
      return new Webhook(ExpediterPlugin.options.statusSecret).verify(body, headers) as { type: string; data: Status };
    } catch (error) {
      if (error instanceof WebhookVerificationError) throw new UnauthorizedException();
      throw error;
    }
  }

  private async apply(ctx: RequestContext, status: Status): Promise<void> {
    const order = await this.orders.findOneByCode(ctx, status.serviceOrderId, ['lines', 'fulfillments']);
    if (order === undefined) return;
    const { memberState, cancellation, change, reason } = status;
    const says = [memberState, cancellation && `cancel ${cancellation}`, change && `change ${change}`, reason];
    const kitchen = says.filter(Boolean).join(', ');
    await this.connection.getRepository(ctx, Order).update(order.id, { customFields: { kitchen } });
    const refused = await this.move(ctx, order, status);
    const note = refused === undefined ? `Kitchen: ${kitchen}` : `Kitchen: ${kitchen}. Vendure refuses it: ${refused}`;
    const entry = { ctx, orderId: order.id, type: HistoryEntryType.ORDER_NOTE as const, data: { note } };
    await this.history.createHistoryEntryForOrder(entry, false);
  }

  /** @returns why Vendure refuses it, for a person; undefined if the order and its fulfilment follow */
  private async move(ctx: RequestContext, order: Order, status: Status): Promise<string | undefined> {
    const to = FULFILLMENT.get(status.memberState);
    const isCancelled = status.memberState === 'cancelled' && order.state !== 'Cancelled';
    if (to === undefined && !isCancelled) return undefined;
    if (IN_CHANGE.includes(order.state)) throw new Error(`order ${order.code} is being changed`);
    if (to === undefined) {
      const reason = status.reason ?? 'by the restaurant';
      const cancelled = await this.orders.cancelOrder(ctx, { orderId: order.id, reason, cancelShipping: true });
      return isGraphQlErrorResult(cancelled) ? cancelled.message : undefined;
    }
    const existing = order.fulfillments.find(({ state }) => state !== 'Cancelled');
    const fulfillment =
      existing ??
      (await this.orders.createFulfillment(ctx, {
        lines: order.lines
          .filter(({ quantity }) => quantity > 0)
          .map(({ id, quantity }) => ({ orderLineId: id, quantity })),
        handler: { code: manualFulfillmentHandler.code, arguments: [{ name: 'method', value: 'Kitchen' }] },
      }));
    if (isGraphQlErrorResult(fulfillment)) return fulfillment.message;
    if (PROGRESS.indexOf(fulfillment.state) >= PROGRESS.indexOf(to)) return undefined;
    const moved = await this.orders.transitionFulfillmentToState(ctx, fulfillment.id, to);
    return isGraphQlErrorResult(moved) ? moved.message : undefined;
  }
}

@VendurePlugin({
  imports: [PluginCommonModule],
  controllers: [StatusController],
  entities: [ExpediterStatus],
  compatibility: '^3.0.0',
  configuration: (config) => {
    // What the kitchen said last, for staff (a filter of the list of orders) and for the storefront.
    config.customFields.Order.push({ name: 'kitchen', type: 'string', nullable: true, readonly: true });
    // A signature is over the bytes as they came.
    config.apiOptions.middleware.push({ route: ROUTE, handler: raw({ type: () => true }), beforeListen: true });
    return config;
  },
})
export class ExpediterPlugin implements OnApplicationBootstrap {
  static options: ExpediterOptions;
  static init(options: ExpediterOptions): typeof ExpediterPlugin {
    ExpediterPlugin.options = options;
    return ExpediterPlugin;
  }

  private signals!: JobQueue<{ orderId: string }>;

  constructor(
    private events: EventBus,
    private jobs: JobQueueService,
    private connection: TransactionalConnection,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    // A killed worker leaves its job as running, and Vendure does not take it again. A signal twice changes nothing.
    await this.connection.rawConnection.query(
      `UPDATE job_record SET state = 'RETRYING' WHERE "queueName" = $1 AND state = 'RUNNING'`,
      [QUEUE],
    );
    this.signals = await this.jobs.createQueue({ name: QUEUE, process: ({ data }) => send(data) });
    this.events.registerBlockingEventHandler({
      event: OrderStateTransitionEvent,
      id: 'expediter-paid-changed-or-cancelled',
      handler: async ({ ctx, order, fromState, toState }) => {
        const isChanged = IN_CHANGE.includes(fromState) && !IN_CHANGE.includes(toState);
        if (isChanged || toState === 'PaymentSettled' || toState === 'Cancelled') await this.signal(ctx, order);
      },
    });
    this.events.registerBlockingEventHandler<OrderEvent | OrderLineEvent>({
      event: [OrderEvent, OrderLineEvent],
      id: 'expediter-fields-or-lines',
      handler: async ({ ctx, order, type }) => {
        const isPlaced = order.orderPlacedAt !== undefined && order.orderPlacedAt !== null;
        if (!isPlaced || IN_CHANGE.includes(order.state)) return;
        if (type === 'updated' || type === 'cancelled') await this.signal(ctx, order);
      },
    });
  }

  /** The job is in the transaction of the change: neither is committed without the other. */
  private async signal(ctx: RequestContext, { code }: Order): Promise<void> {
    await this.signals.add({ orderId: code }, { ctx, retries: RETRIES });
  }
}

/** @throws Error so that Vendure runs the job again */
async function send(signal: { orderId: string }): Promise<void> {
  const { status } = await fetch(ExpediterPlugin.options.signalUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(signal),
    signal: AbortSignal.timeout(10_000),
  });
  if (status !== 204) throw new Error(`Expediter answered ${status}`);
}
