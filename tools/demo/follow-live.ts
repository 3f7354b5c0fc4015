import { EventEmitter } from 'node:events';
import type { LiveMessage } from '../../src/core/domain/live-message.ts';
import { terminalText } from '../../src/observe/terminal-text.ts';
import type { Doors } from './doors.ts';
import type { Timeline } from './journey-lines.ts';

/** What a member's client learns from the statuses. */
export type Live = {
  /** An order's messages in the order of arrival, without repeats. */
  messagesOf(serviceOrderId: string): readonly LiveMessage[];
  /** Resolves when a message of the order has arrived for which `isIt` is true. @throws the signal's reason */
  heard(serviceOrderId: string, isIt: (message: LiveMessage) => boolean, signal: AbortSignal): Promise<void>;
  /** Resolves when the order is at the POS or has failed. @throws the signal's reason */
  sent(serviceOrderId: string, signal: AbortSignal): Promise<void>;
  /** Resolves after the order's last message. @throws the signal's reason */
  ended(serviceOrderId: string, signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
};

const ENDS = new Set(['completed', 'failed', 'cancelled']);

export async function followLive(about: {
  doors: Pick<Doors, 'readStatuses'>;
  timeline: Timeline;
  onError: (error: Error) => void;
}): Promise<Live> {
  const { doors, timeline } = about;
  const orders = new Map<string, LiveMessage[]>();
  const news = new EventEmitter().setMaxListeners(0);

  const receive = (message: LiveMessage): void => {
    const { serviceOrderId, sequence, memberState, cancellation, change, reason } = message;
    const known = orders.get(serviceOrderId) ?? [];
    orders.set(serviceOrderId, known);
    const repeat = known.some((each) => each.sequence === sequence);
    if (!repeat) known.push(message);
    const because = reason === undefined ? '' : `: ${terminalText(reason)}`;
    const cancel = cancellation === undefined ? '' : `, cancel ${cancellation}`;
    const changed = change === undefined ? '' : `, change ${change.replace('_', ' ')}`;
    const what = `${memberState}${cancel}${changed}${because}${repeat ? ' (repeat)' : ''}`;
    timeline.print(serviceOrderId, 'member', `live ${sequence}  ${what}`);
    news.emit(serviceOrderId);
  };
  const stop = await doors.readStatuses(receive, about.onError);

  const heard: Live['heard'] = (id, isIt, signal) =>
    new Promise((resolve, reject) => {
      const settle = (): void => {
        const isHeard = (orders.get(id) ?? []).some(isIt);
        if (!signal.aborted && !isHeard) return;
        news.off(id, settle);
        signal.removeEventListener('abort', settle);
        if (isHeard) resolve();
        else reject(signal.reason as Error);
      };
      news.on(id, settle);
      signal.addEventListener('abort', settle);
      settle();
    });

  return {
    messagesOf: (serviceOrderId) => orders.get(serviceOrderId) ?? [],
    heard,
    sent: (id, signal) => heard(id, ({ memberState }) => memberState !== 'placed', signal),
    ended: (id, signal) => heard(id, ({ status }) => status !== null && ENDS.has(status), signal),
    stop,
  };
}
