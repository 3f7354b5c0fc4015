/** Settings of every provider with a canary in each secret, and a POS that repeats everything that it gets. */
import { z } from 'zod';
import { GiveUp, NeedsOperator, Poison } from '../../src/core/domain/errors.ts';
import type { PosContext, Provider } from '../../src/core/domain/provider.ts';
import { settingsSchema } from '../../src/core/locations/describe-settings.ts';
import { callPos } from '../../src/providers/call-pos.ts';
import { HttpUrl, SHOWN } from '../../src/providers/shared-settings.ts';
import { readBody, sendJson, serveHttp, type HttpServer } from '../../world/network/serve-http.ts';

/**
 * Hides a secret where a schema could forget it: in a list, in a record, and in a URL. It is careless: it quotes
 * everything that its POS says.
 */
export const nested: Provider = {
  integration: 'nested',
  settings: z.strictObject({
    login: z.strictObject({ user: z.string().meta(SHOWN), password: z.string() }),
    either: z.union([z.string(), z.array(z.string())]),
    keys: z.record(z.string(), z.string()),
    urls: z.array(z.strictObject({ url: HttpUrl })),
    mode: z.enum(['live', 'test']).optional(),
    tries: z.number().optional(),
    callUrl: HttpUrl,
  }),
  deduplicates: true,
  async createOrder(_order, context) {
    const { status, said } = await callCarelessly(context);
    if (status < 300) return { providerOrderId: said.slice(0, 255) };
    throw new GiveUp(`the POS said ${said}`, { reason: said, httpStatus: status });
  },
  readStatus: async (_ref, _order, context) => {
    const { said } = await callCarelessly(context);
    return [{ status: 'ready', nativeStatus: said, reason: said, providerOrderId: said.slice(0, 255) }];
  },
  async cancelOrder(_ref, _order, context) {
    throw new NeedsOperator((await callCarelessly(context)).said);
  },
  check: async (context) => (await callCarelessly(context)).said,
  connect: async (context) => {
    const { status, said } = await callCarelessly(context);
    if (status >= 400) throw new TypeError(said);
    return { done: [said], todo: [said] };
  },
  translateWebhook: ({ body }) => {
    const { order } = JSON.parse(body.toString()) as { order: { thirdPartyReference: string; reason: string } };
    if (order.reason.length % 2 === 0) throw new Poison(order.reason);
    return [
      { status: 'ready', nativeStatus: order.reason, reason: order.reason, serviceOrderId: order.thirdPartyReference },
    ];
  },
};

/** Sends all secrets, and gives everything that the POS repeats of them. */
async function callCarelessly(context: PosContext<unknown>): Promise<{ status: number; said: string }> {
  const { settings, signal, fetch, credentials } = context;
  const { callUrl, login } = settings as { callUrl: string; login: { user: string; password: string } };
  const url = `${callUrl}?key=${encodeURIComponent(login.password)}`;
  const grant = { accessToken: secret('granted'), refreshToken: secret('next'), expiresIn: 3_600 };
  const token = await credentials.accessToken({ seed: { callUrl }, obtain: () => Promise.resolve(grant) });
  const basic = Buffer.from(`${login.user}:${login.password}`).toString('base64');
  const headers = { authorization: `Bearer ${token}`, 'x-basic': `Basic ${basic}` };
  const { status, json } = await callPos({
    method: 'POST',
    url,
    headers,
    body: JSON.stringify(settings),
    signal,
    fetch,
  });
  return { status, said: (json as { message: string }).message };
}

/** Begins every secret here. */
export const CANARY = 'Canary0Canary';
let round = 0;
/** Makes all secrets from now on other ones. */
export const nextRound = (): void => void (round += 1);
export const secret = (name: string): string => `${CANARY}${name}${round}`;
const inBase64 = (name: string): string => `whsec_${Buffer.from(secret(name).padEnd(32, '-')).toString('base64')}`;
const client = (clientId = secret('clientId')): { clientId: string; clientSecret: string } => ({
  clientId,
  clientSecret: secret('clientSecret'),
});
const GUID = '9c59d4ab-8242-450f-8f36-b16e1b3ab802';

export type EchoPos = HttpServer & {
  /** What it answers now. It grants a token with any but 401, so that a provider goes on. */
  status: number;
};

/** Starts a POS that repeats all that it gets in each of its answers. */
export async function startEchoPos(): Promise<EchoPos> {
  const pos = await serveHttp(async (request, response) => {
    const said = `${request.url} ${JSON.stringify(request.headers)} ${(await readBody(request)).toString()}`;
    const error = { code: 'UNAUTHORIZED', category: 'AUTHENTICATION_ERROR', detail: said, message: said, field: said };
    const answer = { ...error, error: said, error_description: said, error_type: said, reason: said, errors: [error] };
    const ticket = {
      id: said.slice(0, 255),
      guid: said.slice(0, 255),
      providerOrderId: said.slice(0, 255),
      status: said,
    };
    const token = { access_token: secret('access'), refresh_token: secret('refresh'), expires_in: 3_600 };
    const login = { token: { tokenType: 'Bearer', accessToken: secret('login'), expiresIn: 3_600 } };
    const isLogin = /token|login/.test(request.url?.split('?')[0] ?? '');
    sendJson(response, isLogin && echo.status !== 401 ? 200 : echo.status, {
      ...answer,
      ...ticket,
      ...token,
      ...login,
    });
  });
  const echo: EchoPos = { ...pos, status: 401 };
  return echo;
}

/** The settings of a provider that are never shown. */
export function hiddenOf(provider: Provider): string[] {
  const { properties } = settingsSchema(provider) as { properties: Record<string, { writeOnly?: true }> };
  return Object.keys(properties).filter((name) => properties[name]?.writeOnly === true);
}

/** Right settings of each provider, with new secrets. Together they have every setting that is never shown. */
export function canarySettings(pos: { url: string }): Record<string, (() => Record<string, unknown>)[]> {
  const baseUrl = (): string => `${pos.url}/${secret('base')}`;
  return {
    standard: [
      () => ({
        ...Object.fromEntries(
          ['ordersUrl', 'statusUrl', 'cancelUrl'].map((name) => [
            name,
            `${pos.url}/hooks/${secret(`path${name}`)}/?token=${secret(name)}`,
          ]),
        ),
        secret: inBase64('secret'),
        previousSecret: inBase64('previousSecret'),
      }),
    ],
    hubrise: [
      () => ({
        ...client('public'),
        accessToken: secret('accessToken'),
        authorizationCode: secret('code'),
        baseUrl: baseUrl(),
        oauthUrl: `${pos.url}/${secret('oauth')}`,
      }),
    ],
    square: [
      () => ({
        ...client('public'),
        refreshToken: secret('refreshToken'),
        authorizationCode: secret('code'),
        signatureKey: secret('signatureKey'),
        notificationUrl: `https://example.com/?token=${secret('notificationUrl')}`,
        locationId: 'L1',
        baseUrl: baseUrl(),
      }),
      () => ({ accessToken: secret('accessToken'), locationId: 'L1', baseUrl: baseUrl() }),
    ],
    'lightspeed-k': [
      () => ({
        ...client(),
        refreshToken: secret('refreshToken'),
        webhookUsername: secret('username'),
        webhookPassword: secret('password'),
        businessLocationId: '45454565682155',
        endpointId: 'club-1',
        paymentMethod: 'ONLINE',
        baseUrl: baseUrl(),
        tokenUrl: `${pos.url}/token?key=${secret('tokenUrl')}`,
      }),
    ],
    deliverect: [
      () => ({
        ...client(),
        channelLinkId: secret('link'),
        hmacSecret: secret('hmac'),
        channelName: 'expediter',
        baseUrl: baseUrl(),
      }),
    ],
    toast: [
      () => ({
        ...client(),
        webhookSecret: [secret('one'), secret('another')],
        restaurantGuid: GUID,
        diningOptionGuids: { pickup: GUID, delivery: GUID },
        baseUrl: baseUrl(),
      }),
    ],
    nested: [
      () => ({
        login: { user: 'anna', password: secret('password') },
        either: [secret('either')],
        keys: { one: secret('key') },
        urls: [
          { url: `https://example.com/?token=${secret('url')}` },
          { url: `https://example.com/#${secret('part')}` },
        ],
        mode: 'live',
        callUrl: `${pos.url}/${secret('call')}/orders`,
      }),
    ],
  };
}
