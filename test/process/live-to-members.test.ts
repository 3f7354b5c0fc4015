/** docs/live-to-members.md: what is there to be copied works, and is what we read and write. */
import { generateKeyPairSync } from 'node:crypto';
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { MemberMessage, MemberSnapshot } from '../../src/core/domain/member-message.ts';
import { parseFollowKeys } from '../../src/identity/follow-keys.ts';
import { createFollowTokenVerifier } from '../../src/identity/follow-token.ts';
import { runProgram } from '../../world/processes/run-program.ts';
import { readBody, sendJson, serveHttp } from '../../world/network/serve-http.ts';
import { startPubsub } from '../../world/pubsub/start-pubsub.ts';
import { until } from '../../world/processes/until.ts';

const PROGRAM = fileURLToPath(new URL('../../examples/member-gateway.ts', import.meta.url));
const page = readFileSync(new URL('../../docs/live-to-members.md', import.meta.url), 'utf8');
const ORDER = 'order 4711';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'live-to-members-'));
  symlinkSync(fileURLToPath(new URL('../../node_modules', import.meta.url)), join(folder, 'node_modules'));
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  writeFileSync(join(folder, 'follow-key.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** The code in a language below a heading. */
function code(heading: string, language: string): string {
  const [, section = ''] = page.split(`# ${heading}\n`);
  return new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(section)?.[1] ?? '';
}

it('the documented commands make a key and a follow token that are valid for the order', async () => {
  const commands = code('1. Switch it on', 'sh').split('\n');
  const toJwks = commands.slice(commands.findIndex((line) => line.startsWith('node '))).join('\n');
  const jwks = await runProgram('sh', ['-c', toJwks], {}, { cwd: folder });
  const [, audience = ''] = /setAudience\('(.+)'\)/.exec(page) ?? [];

  const program = `${code('Node', 'js')}\nconsole.log(await followToken('${ORDER}'));`;
  writeFileSync(join(folder, 'sign.mjs'), program);
  const signed = await runProgram(process.execPath, ['sign.mjs'], {}, { cwd: folder });
  expect(signed).toMatchObject({ code: 0, error: '' });
  const verify = createFollowTokenVerifier({ audience, keys: parseFollowKeys(jwks.out) }, () => new Date());
  expect(await verify(signed.out.trim())).toMatchObject({ serviceOrderId: ORDER });
});

it('the documented events match the schemas, and show all fields', () => {
  const schemas = { snapshot: MemberSnapshot.strict(), orderStatusChanged: MemberMessage.strict() };
  const fields = { snapshot: new Set<string>(), orderStatusChanged: new Set<string>() };
  const events = page.matchAll(/^id: (\d+)\nevent: (snapshot|orderStatusChanged)\ndata: (.+)$/gm);
  for (const [, id, event, json = ''] of events) {
    const kind = event as keyof typeof schemas;
    const data = schemas[kind].parse(JSON.parse(json));
    expect(`${data.sequence}`).toBe(id);
    for (const field of Object.keys(data)) fields[kind].add(field);
  }
  const [unread = ''] = /\{"sequence":0.+?\}/.exec(page) ?? [];
  expect(schemas.snapshot.parse(JSON.parse(unread))).toEqual(JSON.parse(unread));
  // Of a pickup; and what only a message of the page has.
  const all = [...fields.orderStatusChanged, 'estimatedDeliveryAt', 'trackingUrl'];
  expect(all.sort()).toEqual(Object.keys(MemberMessage.shape).sort());
  expect(all.filter((field) => field !== 'occurredAt')).toEqual(Object.keys(MemberSnapshot.shape).sort());
});

type Gateway = (request: IncomingMessage, response: ServerResponse, body: string) => void;
type Publication = { version: number; data: object };

describe('the documented program', () => {
  const message = {
    serviceOrderId: ORDER,
    locationId: 'club-1',
    status: 'ready',
    memberState: 'ready_for_pickup',
    fulfillment: 'pickup',
    callOutCode: 'K472',
    cancellation: 'requested',
    providerOrderId: '8F2K',
    appliedAt: '2027-01-31T18:00:00.123456+00:00',
  };
  const { serviceOrderId: _a, locationId: _b, providerOrderId: _c, ...ofMember } = message;
  const tokens = { GATEWAY_KEY: 'key-1' };

  /** Runs it on the topic, where the second of three messages comes twice. */
  async function tell(name: string, gateway: Gateway): Promise<void> {
    const pubsub = await startPubsub();
    onTestFinished(() => pubsub.stop());
    const server = await serveHttp(async (request, response) => {
      gateway(request, response, (await readBody(request)).toString());
    });
    onTestFinished(() => server.stop());
    process.env['PUBSUB_EMULATOR_HOST'] = pubsub.host;
    const client = new PubSub({ projectId: 'test' });
    onTestFinished(() => client.close());
    const [topic] = await client.createTopic('order-status');
    await topic.createSubscription('member-gateway', {
      enableMessageOrdering: true,
      retryPolicy: { minimumBackoff: { nanos: 1e7 }, maximumBackoff: { nanos: 1e8 } },
    });
    const env = { PUBSUB_EMULATOR_HOST: pubsub.host, GOOGLE_CLOUD_PROJECT: 'test', GATEWAY_URL: server.url, ...tokens };
    const child: ChildProcess = spawn(process.execPath, [PROGRAM, name], { env: { ...process.env, ...env } });
    onTestFinished(() => void child.kill('SIGKILL'));
    for (const sequence of [1, 2, 2, 3]) {
      const json = { ...message, sequence };
      await topic.publishMessage({ json });
    }
    await until(() => pubsub.unacknowledged('member-gateway') === 0);
  }

  it('publishes each step once to Centrifugo, without private fields', async () => {
    const publications: Publication[] = [];
    let refusals = 1;
    await tell('centrifugo', (request, response, body) => {
      expect(request).toMatchObject({ method: 'POST', url: '/api/publish', headers: { 'x-api-key': 'key-1' } });
      const {
        channel,
        idempotency_key: key,
        ...publication
      } = JSON.parse(body) as Record<string, string> & Publication;
      expect({ channel, key }).toEqual({ channel: 'order:order%204711', key: `${ORDER}/${publication.version}` });
      // As in https://centrifugal.dev/docs/server/server_api#publish: also a refusal is 200, and what is not above is dropped.
      if (publication.version === 3 && refusals-- > 0)
        return sendJson(response, 200, { error: { code: 100, message: '' } });
      if (publication.version > (publications.at(-1)?.version ?? 0)) publications.push(publication);
      sendJson(response, 200, { result: {} });
    });
    const newest = publications.at(-1);
    expect(newest).toEqual({ version: 3, data: { sequence: 3, ...ofMember } });
    expect(new Set(publications.map(({ version }) => version)).size).toBe(publications.length);
  });

  it('publishes each step once to a Mercure hub, only for subscribers of the order', async () => {
    const updates = new Map<string, Record<string, string>>();
    let refusals = 1;
    await tell('mercure', (request, response, body) => {
      expect(request).toMatchObject({
        method: 'POST',
        url: '/.well-known/mercure',
        headers: { authorization: 'Bearer key-1', 'content-type': expect.stringMatching(/^application\/x-www-form-u/) },
      });
      const update = Object.fromEntries(new URLSearchParams(body));
      if (update['id']?.endsWith(':3') === true && refusals-- > 0) return sendJson(response, 503, {});
      updates.set(update['id'] ?? '', update);
      response.end(update['id']);
    });
    const ids = [1, 2, 3].map((sequence) => `urn:order:order%204711:${sequence}`);
    expect([...updates.keys()].sort()).toEqual(ids);
    const { data = '', ...about } = updates.get(ids[2] ?? '') ?? {};
    const topic = 'https://order.example.com/orders/order%204711';
    expect(about).toEqual({ topic, id: ids[2], type: 'orderStatusChanged', private: 'on' });
    expect(JSON.parse(data)).toEqual({ sequence: 3, ...ofMember });
  });
});
