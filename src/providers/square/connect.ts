import { createHash } from 'node:crypto';
import { NeedsOperator } from '../../core/domain/errors.ts';
import type { Connection, PosContext } from '../../core/domain/provider.ts';
import type { PosAnswer } from '../call-pos.ts';
import { connectByCode } from '../connect-by-code.ts';
import { callSquare, type Square } from './call-square.ts';
import { exchangeCode } from './obtain-token.ts';
import { API_VERSION, SubscriptionAnswer, SubscriptionList, type Settings, type Subscription } from './payloads.ts';
import { readAnswer, refusalOf } from './read-answer.ts';
import { NEEDED_SCOPES, tokenScopes } from './token-scopes.ts';

const EVENT_TYPES = ['order.fulfillment.updated', 'order.updated'];
const PATH = '/v2/webhooks/subscriptions';
const PAGES = 20;

type ConnectContext = PosContext<Settings> & { webhookUrl: string; locations: number };

/**
 * Lets the seller authorise the application where nothing else is given, then subscribes the webhook.
 * https://developer.squareup.com/docs/oauth-api/create-urls-for-square-authorization
 */
export async function connect(context: ConnectContext): Promise<Connection> {
  const { baseUrl, accessToken, clientId, refreshToken, authorizationCode } = context.settings;
  const isAuthorised = accessToken !== undefined || refreshToken !== undefined;
  if (isAuthorised && authorizationCode === undefined) return connectWebhook(context);
  // Only what we print has the code come back to where a person sees it, so there is no request to forge.
  const query = new URLSearchParams({ client_id: clientId ?? '', scope: NEEDED_SCOPES.join(' '), session: 'false' });
  return connectByCode(context, {
    url: `${baseUrl}/oauth2/authorize?${query.toString()}`,
    shown: 'it stands behind code= in the address of the page that opens next',
    exchange: async (code) => ({
      settings: { refreshToken: await exchangeCode(context, code) },
      did: 'Square granted a token for authorizationCode; its refreshToken is in the settings, and renews it.',
    }),
    connect: connectWebhook,
  });
}

/**
 * Subscribes the webhook to order events, or updates an earlier subscription: one whose URL differs only in the token.
 * Subscriptions belong to the application and need its own token. With a seller's token, steps are left to do by hand.
 * https://developer.squareup.com/docs/webhooks/webhook-subscriptions-api
 */
async function connectWebhook(context: ConnectContext): Promise<Connection> {
  const { webhookUrl, locations } = context;
  // OAuth brings a seller's token.
  const ours = context.settings.accessToken === undefined ? undefined : await listOurs(context);
  if (ours === undefined) return byHand(context);

  const [first, ...others] = ours;
  const { signatureKey, did } = first === undefined ? await subscribe(context) : await update(first, context);
  return {
    done: [
      did,
      `One subscription reports all the seller's locations to one URL: ${locations} of our locations need ${locations} of them. Square publishes no limit.`,
    ],
    todo: others.map(
      ({ id }) => `In Square's Developer Console, delete the subscription ${id}: it calls this location too`,
    ),
    settings: { signatureKey, notificationUrl: webhookUrl },
  };
}

/** @returns our subscriptions, or undefined if this token may not see them */
async function listOurs(context: ConnectContext): Promise<Subscription[] | undefined> {
  const ours: Subscription[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < PAGES; page += 1) {
    const query = new URLSearchParams({ include_disabled: 'true', ...(cursor && { cursor }) });
    let answer: PosAnswer;
    try {
      answer = await callSquare(context, { method: 'GET', path: `${PATH}?${query.toString()}` });
    } catch (error) {
      if (error instanceof NeedsOperator && (error.httpStatus === 401 || error.httpStatus === 403)) return undefined;
      throw error;
    }
    const list = readAnswer(SubscriptionList, answer, 'the list of subscriptions');
    const here = withoutQuery(context.webhookUrl);
    ours.push(...list.subscriptions.filter(({ notification_url = '' }) => withoutQuery(notification_url) === here));
    if (!list.cursor) break;
    cursor = list.cursor;
  }
  return ours.sort((one, other) => Number(other.enabled ?? true) - Number(one.enabled ?? true));
}

async function subscribe(context: ConnectContext): Promise<{ signatureKey: string; did: string }> {
  const { webhookUrl } = context;
  const subscription = {
    name: 'Expediter',
    enabled: true,
    event_types: EVENT_TYPES,
    notification_url: webhookUrl,
    api_version: API_VERSION,
  };
  const idempotency_key = createHash('sha256').update(webhookUrl).digest('base64url');
  const answer = await callSquare(context, { method: 'POST', path: PATH, body: { idempotency_key, subscription } });
  const made = readAnswer(SubscriptionAnswer, answer, 'the subscription').subscription;
  const signatureKey = made.signature_key ?? (await signatureKeyOf(made, context));
  return { signatureKey, did: `Square calls this location's webhook now (subscription ${made.id})` };
}

/** Updates a subscription. The key comes first: once the URL is changed, nothing may fail any more. */
async function update(old: Subscription, context: ConnectContext): Promise<{ signatureKey: string; did: string }> {
  const { webhookUrl } = context;
  const signatureKey = await signatureKeyOf(old, context);
  const isRight =
    old.notification_url === webhookUrl &&
    old.enabled !== false &&
    EVENT_TYPES.every((type) => old.event_types.includes(type));
  if (isRight) return { signatureKey, did: `Square calls this location's webhook already (subscription ${old.id})` };

  const event_types = [...new Set([...old.event_types, ...EVENT_TYPES])];
  const subscription = { enabled: true, event_types, notification_url: webhookUrl };
  const answer = await callSquare(context, { method: 'PUT', path: pathOf(old), body: { subscription } });
  if (answer.status >= 300) throw refusalOf(answer, 'the change of the subscription');
  return { signatureKey, did: `Square calls this location's webhook at its new URL (subscription ${old.id})` };
}

async function signatureKeyOf(subscription: Subscription, context: Square): Promise<string> {
  const answer = await callSquare(context, { method: 'GET', path: pathOf(subscription) });
  const { signature_key } = readAnswer(SubscriptionAnswer, answer, 'to show the subscription').subscription;
  if (signature_key === undefined) {
    throw new NeedsOperator(`Square does not tell the signature key of the subscription ${subscription.id}`);
  }
  return signature_key;
}

/** Lists what to do by hand with a seller's token. @throws NeedsOperator if Square refuses the token */
async function byHand(context: ConnectContext): Promise<Connection> {
  const { webhookUrl, locations } = context;
  const { missing } = await tokenScopes(context);
  return {
    done: ["The token is a seller's: it is good, but subscriptions take the application's own token."],
    todo: [
      ...(missing.length > 0 ? [`Let the seller authorise the application for ${missing.join(', ')} as well`] : []),
      `In Square's Developer Console, open the application, choose Webhooks, Subscriptions, Add subscription: notification URL ${webhookUrl} , API version ${API_VERSION}, events ${EVENT_TYPES.join(' and ')}`,
      `Show the subscription's signature key there, and put it into the location's settings as signatureKey, with notificationUrl ${webhookUrl}`,
      ...(locations > 1 ? [`Do the same for each of our ${locations} locations: every one needs a subscription`] : []),
    ],
  };
}

function pathOf({ id }: Subscription): string {
  return `${PATH}/${encodeURIComponent(id)}`;
}

/** The URL without its query: every token makes another query for the same webhook. */
function withoutQuery(url: string): string {
  return url.split('?', 1).join('');
}
