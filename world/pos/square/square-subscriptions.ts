import { randomBytes } from 'node:crypto';
import { CreateSubscription, type SquareAnswer, type SquareCall, UpdateSubscription } from './square-requests.ts';

/** A subscription: https://developer.squareup.com/reference/square/objects/WebhookSubscription */
export type SquareSubscription = {
  id: string;
  name: string | undefined;
  enabled: boolean;
  event_types: string[];
  notification_url: string;
  api_version: string;
  signature_key: string;
  created_at: string;
};

const PAGE = 2;

/** The Webhook Subscriptions API of one application, in small pages. A list does not show the keys. */
export function squareSubscriptions(): {
  subscriptions: SquareSubscription[];
  answer(call: SquareCall): SquareAnswer | undefined;
} {
  const subscriptions: SquareSubscription[] = [];

  function list({ query }: SquareCall): SquareAnswer {
    const all = subscriptions.filter(({ enabled }) => enabled || query.get('include_disabled') === 'true');
    const from = Number(query.get('cursor') ?? 0);
    const page = all.slice(from, from + PAGE).map(({ signature_key: _key, ...shown }) => shown);
    return {
      status: 200,
      body: { subscriptions: page, ...(all.length > from + PAGE && { cursor: `${from + PAGE}` }) },
    };
  }

  function create(call: SquareCall): SquareAnswer {
    const body = call.read(CreateSubscription);
    if ('status' in body) return body;
    const { name, enabled = true, event_types, notification_url, api_version = '2026-05-20' } = body.value.subscription;
    const subscription = {
      id: `wbhk_${randomBytes(16).toString('hex')}`,
      name,
      enabled,
      event_types,
      notification_url,
      api_version,
      signature_key: randomBytes(16).toString('base64url'),
      created_at: '2026-01-10 23:29:48 +0000 UTC',
    };
    subscriptions.push(subscription);
    return { status: 200, body: { subscription } };
  }

  function update(call: SquareCall, subscription: SquareSubscription): SquareAnswer {
    const body = call.read(UpdateSubscription);
    if ('status' in body) return body;
    Object.assign(subscription, body.value.subscription);
    const { signature_key: _key, ...shown } = subscription;
    return { status: 200, body: { subscription: shown } };
  }

  return {
    subscriptions,
    answer(call) {
      if (call.route === 'GET /v2/webhooks/subscriptions') return list(call);
      if (call.route === 'POST /v2/webhooks/subscriptions') return create(call);
      const [, method, id] = /^(GET|PUT) \/v2\/webhooks\/subscriptions\/(\w+)$/.exec(call.route) ?? [];
      const subscription = subscriptions.find((each) => each.id === id);
      if (subscription === undefined) return undefined;
      return method === 'PUT' ? update(call, subscription) : { status: 200, body: { subscription } };
    },
  };
}
