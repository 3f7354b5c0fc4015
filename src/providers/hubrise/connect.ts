import { NeedsOperator } from '../../core/domain/errors.ts';
import type { Connection, PosContext } from '../../core/domain/provider.ts';
import { connectByCode } from '../connect-by-code.ts';
import { callHubrise, type HubriseRequest } from './call-hubrise.ts';
import { authorisePage, exchangeCode } from './exchange-code.ts';
import { nameRefusal } from './name-refusal.ts';
import { Callback, Location, type Settings } from './payloads.ts';

/**
 * The events subscribed to. Order updates include deliveries (https://www.hubrise.com/developers/api/orders#delivery),
 * while `delivery.update` comes with every move of a driver, and nobody gets events about orders of their own making.
 */
const EVENTS = { order: ['update'] };

type ConnectContext = PosContext<Settings> & { webhookUrl: string };

/** Obtains a token if there is none, or a code for another one, then sets the callback. */
export async function connect(context: ConnectContext): Promise<Connection> {
  const { accessToken, authorizationCode } = context.settings;
  if (accessToken !== undefined && authorizationCode === undefined) return setCallback(context);
  return connectByCode(context, {
    url: authorisePage(context.settings),
    shown: 'the page shows it',
    exchange: (code) => exchangeCode(context, code),
    connect: setCallback,
  });
}

/**
 * Sets the callback of the connection, which has one: https://www.hubrise.com/developers/api/callbacks#callbacks. Every
 * run has a new webhook token, hence a new URL, so the callback is set each time.
 * @throws as `callHubrise` does, and NeedsOperator
 */
async function setCallback(context: ConnectContext): Promise<Connection> {
  const { webhookUrl: url } = context;
  const location = Location.safeParse(await ask({ method: 'GET', path: '/location' }));
  const callback = Callback.safeParse(await ask({ method: 'GET', path: '/callback' })).data;
  await ask({ method: 'POST', path: '/callback', body: { url, events: EVENTS } });

  const done = ['Told HubRise to call this webhook for updates of orders.'];
  if (location.success) {
    const { id, name, account } = location.data;
    done.unshift(`The access token is of ${name} (${id}) of ${account.name}, whose currency is ${account.currency}.`);
  }
  const before = URL.parse(callback?.url ?? '');
  if (before !== null) {
    done.push(
      isSameWebhook(before, new URL(url))
        ? 'It took the place of its earlier URL of ours.'
        : `It took the place of the connection's callback before, at ${before.origin}.`,
    );
  }
  return { done, todo: [] };

  async function ask(request: HubriseRequest): Promise<unknown> {
    const answer = await callHubrise(context, request);
    if (answer.status < 300) return answer.json;
    throw new NeedsOperator(`HubRise refused ${request.method} ${request.path} with ${nameRefusal(answer)}`, {
      httpStatus: answer.status,
    });
  }
}

/** Compares without the query, which holds the token. */
function isSameWebhook(one: URL, other: URL): boolean {
  return one.origin === other.origin && one.pathname === other.pathname;
}
