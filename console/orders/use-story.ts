import { useCallback, useEffect, useRef } from 'preact/hooks';
import { API, ask } from '../api.ts';
import { followInSight, isInSight } from '../parts/follow-in-sight.ts';
import { useLoaded, type Loaded } from '../parts/use-loaded.ts';
import type { ShownOrder } from '../wire.ts';
import { refreshAfterMs } from './what-to-do.ts';

/** Time in which messages are collected for one reload. */
const GATHER_MS = 40;

/**
 * Loads an order. Reloads it after each live message, and periodically because some changes send no message. Does so
 * only while the page is visible.
 */
export function useStory(serviceOrderId: string): Loaded<ShownOrder> {
  const path = `/orders/${encodeURIComponent(serviceOrderId)}`;
  const loaded = useLoaded((signal) => ask<ShownOrder>('GET', `${path}?ordered=true`, { signal }), [path]);
  const { value, problem, again } = loaded;

  useEffect(() => {
    const timer = setTimeout(() => isInSight() && again(), refreshAfterMs(value));
    return () => clearTimeout(timer);
  }, [value, problem]);

  const known = useRef(0);
  known.current = value?.order?.sequence ?? 0;
  const onMessage = useCallback((sequence: number) => sequence > known.current && again(), []);
  const isOpen = value !== undefined && (value.order === null || value.order.endedAt === null);
  useEffect(() => (isOpen ? follow(`${API}${path}/live`, onMessage) : undefined), [path, isOpen]);

  useEffect(() => {
    const refresh = (): void => void (isInSight() && again());
    document.addEventListener('visibilitychange', refresh);
    return () => document.removeEventListener('visibilitychange', refresh);
  }, []);
  return loaded;
}

/** @param onMessage gets the highest sequence of messages that arrived together @returns a function that stops it */
function follow(url: string, onMessage: (sequence: number) => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let highest = 0;
  const gather = ({ lastEventId }: MessageEvent): void => {
    highest = Math.max(highest, Number(lastEventId));
    timer ??= setTimeout(() => {
      timer = undefined;
      onMessage(highest);
    }, GATHER_MS);
  };
  const stop = followInSight(url, (source) => source.addEventListener('orderStatusChanged', gather));
  return () => {
    clearTimeout(timer);
    stop();
  };
}
