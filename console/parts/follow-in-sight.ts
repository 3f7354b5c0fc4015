/**
 * Follows a stream of events while the page is visible, because a browser allows few connections to a service and a
 * stream holds one.
 * @param listen gets each new stream @returns a function that stops it
 */
export function followInSight(url: string, listen: (source: EventSource) => void): () => void {
  let source: EventSource | undefined;
  const close = (): void => {
    source?.close();
    source = undefined;
  };
  const follow = (): void => {
    if (!isInSight()) return close();
    if (source !== undefined) return;
    source = new EventSource(url);
    // Otherwise the EventSource would reconnect after the end.
    source.addEventListener('end', close);
    listen(source);
  };
  follow();
  document.addEventListener('visibilitychange', follow);
  return () => {
    document.removeEventListener('visibilitychange', follow);
    close();
  };
}

export function isInSight(): boolean {
  return document.visibilityState === 'visible';
}
