/** Runs in a page: follows an order with the clients that pages use, each as its own documentation says. */
import { fetchEventSource } from '@microsoft/fetch-event-source';
import { EventSourcePolyfill } from 'event-source-polyfill';
import { EventSource as ByFetch } from 'eventsource';
import { SSE } from 'sse.js';
import { follow } from '../../packages/follow/follow.js';

type Follows = { url: string; token: string; told: (memberState: string) => void; ended: () => void };
/** What all of them have of the browser's EventSource. */
type Source = { addEventListener(kind: string, listener: (event: { data: string }) => void): void; close(): void };

const listen = (source: Source, { told, ended }: Follows): void => {
  for (const kind of ['snapshot', 'orderStatusChanged']) {
    source.addEventListener(kind, ({ data }) => told((JSON.parse(data) as { memberState: string }).memberState));
  }
  source.addEventListener('end', () => {
    source.close();
    ended();
  });
};
const headersOf = ({ token }: Follows): Record<string, string> => ({ authorization: `Bearer ${token}` });

const CLIENTS: Readonly<Record<string, (about: Follows) => void>> = {
  EventSource: (about) => listen(new EventSource(`${about.url}?token=${about.token}`), about),
  eventsource: (about) =>
    listen(
      new ByFetch(about.url, {
        fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, ...headersOf(about) } }),
      }),
      about,
    ),
  'event-source-polyfill': (about) => listen(new EventSourcePolyfill(about.url, { headers: headersOf(about) }), about),
  'sse.js': (about) => listen(new SSE(about.url, { headers: headersOf(about) }), about),
  'fetch-event-source'(about) {
    const over = new AbortController();
    void fetchEventSource(about.url, {
      // Tracers of pages add such headers to all requests.
      headers: { ...headersOf(about), traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`, baggage: 'page=order' },
      signal: over.signal,
      onmessage({ event, data }) {
        const { memberState } = JSON.parse(data) as { memberState?: string };
        if (memberState !== undefined) about.told(memberState);
        if (event !== 'end') return;
        over.abort();
        about.ended();
      },
    });
  },
  'our own': ({ url, token, told, ended }) =>
    void follow({
      url,
      token: () => token,
      onUpdate: ({ memberState }) => told(memberState),
      onState: (state) => state === 'ended' && ended(),
    }),
};

Object.assign(globalThis, { CLIENTS });
