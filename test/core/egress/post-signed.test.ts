/** Signed webhooks: what a receiver gets, and what its answers mean. */
import type { ServerResponse } from 'node:http';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { kitchenEvent } from '../../../src/core/domain/cloud-event.ts';
import { guardedFetch } from '../../../src/core/egress/guarded-fetch.ts';
import { eventWebhook, NotSent, postSigned, type SignedWebhook } from '../../../src/core/egress/post-signed.ts';
import { allowedHosts } from '../../../world/network/allowed-loopback.ts';
import { type HttpServer, readBody, serveHttp } from '../../../world/network/serve-http.ts';

const [NEW, OLD, OTHER] = [1, 2, 3].map((n) => `whsec_${Buffer.alloc(32, n).toString('base64')}`) as [
  string,
  string,
  string,
];
type Got = { headers: Record<string, string>; body: string; socket: number | undefined };

let receiver: HttpServer;
let to: SignedWebhook;
let got: Got[] = [];
let answer: (response: ServerResponse) => void;

beforeAll(async () => {
  receiver = await serveHttp(async (request, response) => {
    const body = (await readBody(request)).toString();
    got.push({ headers: request.headers as Record<string, string>, body, socket: request.socket.remotePort });
    answer(response);
  });
  to = { url: receiver.url, secrets: [NEW, OLD], send: guardedFetch(allowedHosts), now: () => new Date() };
});
afterAll(() => receiver.stop());
beforeEach(() => {
  got = [];
  answer = (response) => void response.end('ok');
});

const AVAILABILITY = {
  locationId: 'club-1',
  integration: 'acme',
  state: 'busy',
  source: 'pos',
  since: '2027-01-31T18:00:00+00:00',
  until: null,
  extraMinutes: 20,
  sequence: 1_801_418_400_123,
} as const;

it('a CloudEvent is sent in structured mode, signed as a whole by each secret', async () => {
  await eventWebhook(to, { source: 'https://expediter.example.com/live' })(kitchenEvent(AVAILABILITY));
  const [{ headers, body } = { headers: {} as Got['headers'], body: '' }] = got;
  expect(headers['content-type']).toBe('application/cloudevents+json');
  expect(JSON.parse(body)).toEqual({
    specversion: '1.0',
    id: 'club-1/1801418400123',
    source: 'https://expediter.example.com/live',
    type: 'expediter.kitchen.availability-changed.v1',
    subject: 'club-1',
    time: '2027-01-31T18:00:00.123Z',
    datacontenttype: 'application/json',
    dataschema: 'urn:expediter:kitchen-availability:v1',
    sequence: '1801418400123',
    data: AVAILABILITY,
  });
  for (const secret of [NEW, OLD]) expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body));
  expect(() => new Webhook(OTHER).verify(body, headers)).toThrow(WebhookVerificationError);
});

it('connections are used again, and no message waits for the body of an answer', async () => {
  answer = (response) => void response.write('the rest never comes');
  await postSigned(to, { id: 'msg-0', body: '{}' });
  answer = (response) => void response.end('ok');
  for (let nth = 1; nth <= 20; nth += 1) await postSigned(to, { id: `msg-${nth}`, body: '{}' });
  expect(new Set(got.map(({ socket }) => socket)).size).toBeLessThan(20);
});

it.each([
  ['410', { status: 410 }, { isFinal: true, retryAfterMs: undefined }],
  ['503 with Retry-After', { status: 503, headers: { 'retry-after': '7' } }, { isFinal: false, retryAfterMs: 7_000 }],
  ['404', { status: 404 }, { isFinal: false, retryAfterMs: undefined }],
  ['a redirect', { status: 302, headers: { location: 'https://example.com/' } }, { isFinal: false }],
])(
  'after %s the message counts as not sent',
  async (_, { status, headers = {} }: { status: number; headers?: object }, about) => {
    answer = (response) => void response.writeHead(status, { ...headers }).end();
    await expect(postSigned(to, { id: 'msg-1', body: '{}' })).rejects.toMatchObject({ name: 'NotSent', ...about });
  },
);

it('a closed connection counts as not sent, in words without the URL', async () => {
  answer = (response) => void response.socket?.destroy();
  const error = await postSigned(to, { id: 'msg-1', body: '{}' }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(NotSent);
  expect((error as NotSent).message).toMatch(/^the receiver could not be reached \(\w+\)$/);
});
