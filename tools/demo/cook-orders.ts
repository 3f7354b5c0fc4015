import { setTimeout as sleep } from 'node:timers/promises';
import type { Simulator, Ticket } from '../../world/pos/simulator.ts';
import type { Timeline } from './journey-lines.ts';
import { wantedInWords } from './render-tickets.ts';

/** Pause between two statuses: long enough to watch, short enough to wait for. */
const PAUSE_MS = 600;
/** How often the kitchen looks for a cancel, so that it is printed before the member's message. */
const LOOK_MS = 10;
/** If the simulated vendor gives up a webhook, the kitchen waits this long and reports the status again. */
const TRY_AGAIN_MS = 1_000;

export type WebhookAnswer = Awaited<ReturnType<Simulator['report']>>;

/**
 * Plays the kitchen: moves every ticket of the POS through its statuses, and reports each status to the webhook.
 * @returns the answers to the webhooks; the array grows while the kitchen works
 */
export function cookOrders(about: {
  pos: Simulator;
  /** The URL to which the statuses of an order are reported. */
  webhookUrlOf: (serviceOrderId: string) => string | Promise<string>;
  /** Promises by order id. The kitchen awaits an order's promise before it hands the order out. */
  holds: ReadonlyMap<string, Promise<void>>;
  timeline: Timeline;
  signal: AbortSignal;
}): readonly WebhookAnswer[] {
  const { pos, webhookUrlOf, holds, timeline, signal } = about;
  const answers: WebhookAnswer[] = [];

  const report = async (ticket: Ticket, status: string, width: number): Promise<boolean> => {
    const answer = await pos.report(await webhookUrlOf(ticket.serviceOrderId), ticket, status);
    if (signal.aborted) return false;
    answers.push(answer);
    const deliveryId = deliveryIdIn(answer);
    const said = [
      answer.status || 'no answer',
      outcomeIn(answer.body),
      deliveryId && `(${deliveryId})`,
      repeatsIn(answer),
    ];
    const good = answer.status === 200;
    timeline.print(
      ticket.serviceOrderId,
      'POS',
      `webhook ${status.padEnd(width)}  ${said.filter(Boolean).join(' ')}`,
      good ? 'good' : 'bad',
    );
    return good;
  };

  const cook = async (ticket: Ticket): Promise<void> => {
    const { serviceOrderId, providerOrderId, fulfillment, callOut, wantedAt } = ticket;
    const wanted = wantedAt === undefined ? '' : `, ${wantedInWords(wantedAt)}`;
    const statuses = pos.lifeOf(fulfillment);
    const width = Math.max(...statuses.map((status) => status.length));
    // The service may still send an order of an earlier run, whose clock was not started in this run.
    timeline.begin({ serviceOrderId, fulfillment });
    timeline.print(
      serviceOrderId,
      'POS',
      `has the order as ${providerOrderId}${callOut === undefined ? '' : `, code ${callOut}`}${wanted}`,
    );
    for (const status of statuses) {
      for (let waited = 0; waited < PAUSE_MS && !ticket.cancelled; waited += LOOK_MS) {
        await sleep(LOOK_MS, undefined, { signal });
      }
      if (status === statuses.at(-1)) await holds.get(serviceOrderId);
      if (ticket.cancelled) return timeline.print(serviceOrderId, 'POS', 'cancelled the order and stops cooking');
      while (!(await report(ticket, status, width))) await sleep(TRY_AGAIN_MS, undefined, { signal });
    }
  };

  pos.onTicket = (ticket) => {
    cook(ticket).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  };
  return answers;
}

/** The id of a webhook that was accepted but is not in Postgres yet. It will be stored under this id. */
export function deliveryIdIn({ body }: WebhookAnswer): string | undefined {
  const deliveryId = (body as { deliveryId?: unknown } | null)?.deliveryId;
  return typeof deliveryId === 'string' ? deliveryId : undefined;
}

function repeatsIn({ attempts = 1 }: WebhookAnswer): string {
  return attempts === 1 ? '' : `at attempt ${attempts}`;
}

function outcomeIn(body: unknown): string {
  const outcome = (body as { outcome?: unknown } | null)?.outcome;
  return typeof outcome === 'string' ? outcome : '';
}
