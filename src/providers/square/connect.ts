import { createHash } from 'node:crypto';
import { type PosAnswer, quoteRefusal } from '../call-pos.ts';
import { callSquare, readAnswer, refusalOf, type Square } from './call-square.ts';
import {
  API_VERSION,
  LocationAnswer,
  OrderEntries,
  type Settings,
  type Subscription,
  SubscriptionAnswer,
  SubscriptionList,
  TokenStatus,
} from './payloads.ts';
import { NeedsOperator } from '../../core/domain/errors.ts';
import type { Connection, PosContext } from '../../core/domain/provider.ts';
import { connectByCode } from '../oauth.ts';
import { authorisePage, NEEDED_SCOPES } from './authorisation.ts';
import { exchangeCode, grantSeed, secondsUntil, tokenOf } from './obtain-token.ts';

/**
 * Reads a token's scopes and expiry: https://developer.squareup.com/reference/square/oauth-api/retrieve-token-status
 * @returns two empty lists if Square names no scopes. An application's own token may have no scopes and no expiry
 * @throws TryAgain; NeedsOperator if Square refuses the token
 */
async function tokenScopes(
  context: Square,
): Promise<{ granted: readonly string[]; missing: readonly string[]; expiresAt: string | undefined }> {
  const answer = await callSquare(context, { method: 'POST', path: '/oauth2/token/status' }).catch(
    quoteRefusal(
      [401, 403],
      (status) =>
        `Square refuses the ${context.settings.accessToken === undefined ? "seller's token" : 'accessToken'} (${status}): check that it belongs to this baseUrl and has not expired`,
    ),
  );
  const { scopes, expires_at: expiresAt } = readAnswer(TokenStatus, answer, "the token's status");
  const granted = scopes ?? [];
  const missing = granted.length === 0 ? [] : NEEDED_SCOPES.filter((scope) => !granted.includes(scope));
  return { granted, missing, expiresAt: expiresAt ?? undefined };
}

const EVENT_TYPES = ['order.fulfillment.updated', 'order.updated', 'oauth.authorization.revoked'];
const PATH = '/v2/webhooks/subscriptions';
const PAGES = 20;

type ConnectContext = PosContext<Settings> & { webhookUrl: string; locations: number };

/** Lets the seller authorise the application if no token is given, then subscribes the webhook. */
export async function connect(context: ConnectContext): Promise<Connection> {
  const { accessToken, refreshToken, authorizationCode } = context.settings;
  const isAuthorised = accessToken !== undefined || refreshToken !== undefined;
  if (isAuthorised && authorizationCode === undefined) return connectWebhook(context);
  return connectByCode(context, {
    // A `state` against forged requests is not needed: the code returns only to the person who opens this printed URL.
    url: authorisePage(context.settings),
    shown: 'after code= in the address of the next page',
    exchange: (code) => exchangeCode(context, code),
    connect: connectWebhook,
  });
}

/** Subscribes the webhook to order events, or updates an earlier subscription whose URL differs only in the token. */
async function connectWebhook(context: ConnectContext): Promise<Connection> {
  const { webhookUrl, locations } = context;
  // A token obtained by OAuth belongs to a seller, and cannot read subscriptions.
  const ours = context.settings.accessToken === undefined ? undefined : await listOurs(context);
  if (ours === undefined) return byHand(context);

  const [first, ...others] = ours;
  const { signatureKey, did } = first === undefined ? await subscribe(context) : await update(first, context);
  return {
    done: [
      did,
      ...(locations > 1
        ? [
            `A subscription has one URL, and each of our ${locations} locations has its own: connect each of them. ` +
              'Square publishes no limit on the number of subscriptions.',
          ]
        : []),
    ],
    todo: others.map(
      ({ id }) => `In Square's Developer Console, delete the subscription ${id}: it calls this location too`,
    ),
    settings: { signatureKey, notificationUrl: webhookUrl },
  };
}

/** @returns our subscriptions, or undefined if this token may not read them */
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
  return { signatureKey, did: `Square now calls this location's webhook (subscription ${made.id})` };
}

/** Updates a subscription. Reads the key first: a failure after the change would leave the old URL in the settings. */
async function update(old: Subscription, context: ConnectContext): Promise<{ signatureKey: string; did: string }> {
  const { webhookUrl } = context;
  const signatureKey = await signatureKeyOf(old, context);
  const isRight =
    old.notification_url === webhookUrl &&
    old.enabled !== false &&
    EVENT_TYPES.every((type) => old.event_types.includes(type));
  if (isRight) return { signatureKey, did: `Square already calls this location's webhook (subscription ${old.id})` };

  const event_types = [...new Set([...old.event_types, ...EVENT_TYPES])];
  const subscription = { enabled: true, event_types, notification_url: webhookUrl };
  const answer = await callSquare(context, { method: 'PUT', path: pathOf(old), body: { subscription } });
  if (answer.status >= 300) throw refusalOf(answer, 'the change of the subscription');
  return { signatureKey, did: `Square now calls this location's webhook at its new URL (subscription ${old.id})` };
}

async function signatureKeyOf(subscription: Subscription, context: Square): Promise<string> {
  const answer = await callSquare(context, { method: 'GET', path: pathOf(subscription) });
  const { signature_key } = readAnswer(SubscriptionAnswer, answer, 'the subscription').subscription;
  if (signature_key === undefined) {
    throw new NeedsOperator(
      `Square's answer has no signature key of subscription ${subscription.id}: copy it into signatureKey`,
    );
  }
  return signature_key;
}

/** Lists the operator's steps if we have a seller's token. @throws NeedsOperator if Square refuses the token */
async function byHand(context: ConnectContext): Promise<Connection> {
  const { webhookUrl, locations } = context;
  const { missing } = await tokenScopes(context);
  return {
    done: ["The seller's token is valid, but only the application's own token can make subscriptions."],
    todo: [
      ...(missing.length > 0 ? [`Let the seller also authorise the application for ${missing.join(', ')}`] : []),
      `In Square's Developer Console, open the application, choose Webhooks, Subscriptions, Add subscription: notification URL ${webhookUrl} , API version ${API_VERSION}, events ${EVENT_TYPES.join(', ')}`,
      `Show the subscription's signature key there, and put it into the location's settings as signatureKey, with notificationUrl ${webhookUrl}`,
      ...(locations > 1 ? [`Do the same for each of our ${locations} locations: each needs its own subscription`] : []),
    ],
  };
}

function pathOf({ id }: Subscription): string {
  return `${PATH}/${encodeURIComponent(id)}`;
}

/** Returns the URL without its query, which contains the token. */
function withoutQuery(url: string): string {
  return url.split('?', 1).join('');
}

/**
 * Reads the token's scopes, then the location. A seller's token can read the location only with the scope
 * MERCHANT_PROFILE_READ, which orders do not need. Without this scope, a search of the location's orders is the proof.
 * @returns a sentence that tells when an `accessToken` expires, because it cannot be renewed. Otherwise undefined
 * @throws TryAgain, NeedsOperator
 */
export async function check(context: PosContext<Settings>): Promise<string | void> {
  const { granted, missing, expiresAt } = await tokenScopes(context);
  if (missing.length > 0) {
    throw new NeedsOperator(
      `the ${context.settings.accessToken === undefined ? 'token' : 'accessToken'} lacks ${missing.join(', ')}: let the seller authorise the application for that too`,
    );
  }
  if (granted.length === 0 || granted.includes('MERCHANT_PROFILE_READ')) await showLocation(context);
  else await searchLocation(context);
  if (expiresAt === undefined || context.settings.accessToken === undefined) return;
  const days = Math.floor(secondsUntil(expiresAt, context.now) / 86_400);
  return `the accessToken expires in ${days} days and cannot be renewed: use a refreshToken instead`;
}

/** Reads the location: https://developer.squareup.com/reference/square/locations-api/retrieve-location */
async function showLocation(context: PosContext<Settings>): Promise<void> {
  const { locationId } = context.settings;
  const answer = await callSquare(context, { method: 'GET', path: `/v2/locations/${locationId}` }).catch(
    quoteRefusal([403], (status) => `Square refuses the location (${status}): use a locationId of the token's seller`),
  );
  if (answer.status === 404) {
    throw new NeedsOperator('Square does not know this location: check locationId and baseUrl', { httpStatus: 404 });
  }
  const { id, status } = readAnswer(LocationAnswer, answer, 'the location of locationId').location;
  // "main" is an alias of a location. Webhooks name a location by its id.
  if (id !== locationId) throw new NeedsOperator('locationId is an alias of the location: use its id');
  if (status === 'INACTIVE') {
    throw new NeedsOperator('the location of locationId is inactive at Square: activate it, or correct locationId');
  }
}

/**
 * Searches the location's orders for one entry, which is an order's id without its contents. Square does not document
 * its answer for another seller's location. We assume that it refuses, as it refuses an order there.
 */
async function searchLocation(context: PosContext<Settings>): Promise<void> {
  const body = { location_ids: [context.settings.locationId], limit: 1, return_entries: true };
  const answer = await callSquare(context, { method: 'POST', path: '/v2/orders/search', body }).catch(
    quoteRefusal(
      [403],
      (status) => `Square refuses the location's orders (${status}): use a locationId of the token's seller`,
    ),
  );
  readAnswer(OrderEntries, answer, 'the orders of locationId');
}

const DAY_S = 86_400;
/**
 * Age in seconds at which a daily call renews a token. Square advises "every 7 days or less":
 * https://developer.squareup.com/docs/oauth-api/refresh-revoke-limit-scope (read in November 2026)
 */
const MAX_AGE_S = 5.5 * DAY_S;
/** Seconds until a token without an expiry is checked again. */
const ENDLESS_S = 30 * DAY_S;

/** Renews the seller's token. An `accessToken` cannot be renewed, so this only reads when it expires. */
export async function renewConnection(context: PosContext<Settings>): Promise<void> {
  const { credentials, settings, now } = context;
  const { accessToken } = settings;
  if (accessToken === undefined) {
    await credentials.accessToken({ ...tokenOf(context), maxAgeS: MAX_AGE_S });
    return;
  }
  await credentials.accessToken({
    seed: grantSeed(settings) ?? {},
    async obtain(_none, signal) {
      const { expiresAt } = await tokenScopes({ ...context, signal });
      if (expiresAt === undefined) return { accessToken, expiresIn: ENDLESS_S };
      const expiresIn = secondsUntil(expiresAt, now);
      return { accessToken, expiresIn, lastsS: expiresIn };
    },
    maxAgeS: DAY_S / 2,
  });
}
