import cookie from '@fastify/cookie';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { describeError } from '../../core/domain/classify-error.ts';
import { NeedsOperator, TryAgain } from '../../core/domain/errors.ts';
import { connectLocation } from '../../core/locations/connect-location.ts';
import {
  authorisationOf,
  findConnectLink,
  grantByLink,
  makeState,
  OtherAccount,
  reopenConnectLink,
  type ConnectLink,
} from '../../core/locations/connect-links.ts';
import { getLocation, WrongLocation } from '../../core/locations/locations.ts';
import { seal, unseal, type SettingsKeys } from '../../core/locations/settings-key.ts';
import { audited } from '../../core/operators/audit.ts';
import type { Actor } from '../../core/operators/operator.ts';
import { secureHeaders } from '../console/page-files.ts';
import { isDatabaseAway } from '../operator/answer-errors.ts';
import type { OperatorDeps } from '../operator/operator-deps.ts';
import { actionFrom } from '../request.ts';
import { TooManyFailures } from '../throttle-failures.ts';
import { STYLE, writePage, type Page } from './connect-page.ts';

/** The owner must finish signing in at the vendor within this time. They may have to make an account there. */
const FLOW_S = 3_600;
const CODE_MAX = 1_024;

const Flow = z.object({
  linkId: z.uuid(),
  state: z.string(),
  /** In milliseconds, by Postgres's clock. */
  startedAt: z.number(),
});
/** A sign-in in progress. It is stored only in the browser's cookie, so that no other browser can finish it. */
type Flow = z.infer<typeof Flow>;

/** Associated data of the encryption: no other value encrypted with SETTINGS_KEY passes as a sign-in. */
const PLACE = 'connect/sign-in';

/** The audit's actor: somebody with a link, who is not authenticated. The subject is the link's id. */
const OWNER: Actor = { kind: 'nobody', id: 'connect link', name: 'connect link' };

type Deps = Pick<
  OperatorDeps,
  'pool' | 'now' | 'judge' | 'translating' | 'registry' | 'consoleUrl' | 'credentialsFor' | 'posFetch' | 'wake'
>;
type Answer = Page & { status: number };

/**
 * Mounts the public pages of connect links. No GET uses a link up except the callback with the vendor's code, so programs
 * that preview links do no harm.
 *
 * - `GET /:token` the page that names the location and the vendor; `404` if the link cannot be used
 * - `GET /:token/start` `302` to the vendor's page, with a cookie that binds the sign-in to this browser
 * - `GET /callback` where the vendor's page redirects the browser to
 */
export async function connectRoutes(scope: FastifyInstance, deps: Deps): Promise<void> {
  const { pool, now, judge, translating, registry } = deps;
  const origin = deps.consoleUrl ?? translating.publicUrl;
  const redirectUri = `${origin}/connect/callback`;
  const isSecure = origin.startsWith('https:');
  const cookieName = isSecure ? '__Host-expediter_connect' : 'expediter_connect';
  // `Lax`, because a `Strict` cookie would not be sent when the vendor, which is another site, redirects the browser.
  const attributes = { path: '/', httpOnly: true, sameSite: 'lax', secure: isSecure } as const;

  await scope.register(cookie);
  scope.addHook('onRequest', async (_request, reply) => {
    reply.headers({ ...secureHeaders, 'cache-control': 'no-store', 'x-robots-tag': 'noindex' });
  });
  scope.setNotFoundHandler((_request, reply) => show(reply, ENDED));
  scope.setErrorHandler((error, request, reply) => {
    if (error instanceof TooManyFailures) {
      reply.headers({ 'retry-after': error.retryAfterS, connection: 'close' });
      return show(reply, TOO_MANY);
    }
    if (!isDatabaseAway(error)) request.log.error({ err: error }, 'a connect page failed');
    return show(reply, AWAY);
  });

  const find = (request: FastifyRequest, token: string): Promise<ConnectLink | undefined> =>
    judge(request, 'connect_link', [token], () => findConnectLink(pool, token));
  const vendorOf = ({ integration }: ConnectLink): string => registry.get(integration)?.authorisation?.vendor ?? '';

  scope.get('/page.css', async (_request, reply) =>
    reply.header('cache-control', 'max-age=3600').type('text/css; charset=utf-8').send(STYLE),
  );

  scope.get<{ Params: { token: string } }>('/:token', async (request, reply) => {
    const { token } = request.params;
    const link = await find(request, token);
    return show(reply, link === undefined ? ENDED : askOwner(link, vendorOf(link), `/connect/${token}/start`));
  });

  scope.get<{ Params: { token: string } }>('/:token/start', { exposeHeadRoute: false }, async (request, reply) => {
    const link = await find(request, request.params.token);
    if (link === undefined) return show(reply, ENDED);
    const flow: Flow = { linkId: link.linkId, state: makeState(), startedAt: now().getTime() };
    let page: string;
    try {
      const { provider, settings } = await translating.decryptSettings(await getLocation(pool, link.locationId));
      page = authorisationOf(provider).page(settings, { redirectUri, state: flow.state });
    } catch (error) {
      if (!(error instanceof NeedsOperator || error instanceof WrongLocation)) throw error;
      request.log.warn({ locationId: link.locationId, problem: error.message }, 'a connect link leads nowhere');
      return show(reply, WRONG_SETTINGS);
    }
    const sealed = await seal(translating.keys, flow, PLACE);
    return reply.setCookie(cookieName, sealed, { ...attributes, maxAge: FLOW_S }).redirect(page, 302);
  });

  scope.get('/callback', { exposeHeadRoute: false }, async (request, reply) => {
    const query = new URLSearchParams(/\?.*/s.exec(request.url)?.[0]);
    const [code, state] = [query.get('code') ?? '', query.get('state')];
    const flow = await openFlow(translating.keys, request.cookies[cookieName], now());
    if (flow === undefined) return show(reply, NOT_STARTED);
    // HubRise documents no state in the answer to a refusal, which changes nothing.
    if (query.has('error')) return show(reply.clearCookie(cookieName, attributes), DENIED);
    // guard: connect-state
    if (state !== flow.state) return show(reply, NOT_STARTED);
    const link = await reopenConnectLink(pool, flow.linkId);
    if (link === undefined) return show(reply.clearCookie(cookieName, attributes), ENDED);
    // Throttles senders of invented codes, because each code costs a request to the vendor.
    const granted = await judge(request, 'connect_code', [code], async () => {
      const answer = code === '' || code.length > CODE_MAX ? REFUSED : await grant(deps, request, link, code);
      return answer === REFUSED ? undefined : answer;
    });
    const answer = granted ?? REFUSED;
    if (answer === VENDOR_AWAY) return show(reply, VENDOR_AWAY);
    return show(reply.clearCookie(cookieName, attributes), answer === DONE ? thank(link, vendorOf(link)) : answer);
  });
}

/** Grants access by a code, then connects the webhook. The audit records both. */
async function grant(deps: Deps, request: FastifyRequest, link: ConnectLink, code: string): Promise<Answer> {
  const { pool, translating } = deps;
  const { linkId, locationId } = link;
  const { log } = request;
  const rules = {
    registry: deps.registry,
    keys: translating.keys,
    publicUrl: translating.publicUrl === '' ? undefined : translating.publicUrl,
  };
  const work = async (): Promise<{ answer: Answer; after: string } | { answer: Answer; refused: string }> => {
    try {
      const did = await grantByLink({ ...deps, rules }, link, code);
      if (did === undefined) return { answer: ENDED, refused: 'ended' };
    } catch (error) {
      const refused = refusalOf(error);
      if (refused === undefined) throw error;
      log.warn({ locationId, linkId, problem: (error as Error).message }, 'a restaurant could not grant access');
      return refused;
    }
    deps.wake();
    return { answer: DONE, after: (await connectWebhook()) ? 'connected' : 'granted' };
  };
  /** @returns whether nothing is left to do by hand */
  const connectWebhook = async (): Promise<boolean> => {
    if (rules.publicUrl === undefined) return false;
    let problem: string | undefined;
    try {
      const { publicUrl } = rules;
      const { todo } = await connectLocation({ ...deps, rules: { ...rules, publicUrl } }, locationId, {
        isSeen: false,
      });
      if (todo.length === 0) return true;
    } catch (error) {
      problem = error instanceof WrongLocation ? error.message : describeError(error);
    }
    log.warn({ locationId, problem }, 'a restaurant granted access; connect its webhook: expediter provider connect');
    return false;
  };
  const action = { action: 'connect by link', subject: linkId, locationId, ...actionFrom(request) };
  const ended = await audited(pool, OWNER, action, work, (done) => ('after' in done ? done.after : done.refused)).catch(
    (error: unknown) => {
      if (!(error instanceof TryAgain)) throw error;
      log.warn({ locationId, linkId, problem: error.message }, 'a restaurant could not grant access');
      return { answer: VENDOR_AWAY };
    },
  );
  return ended.answer;
}

function refusalOf(error: unknown): { answer: Answer; refused: string } | undefined {
  if (error instanceof OtherAccount) return { answer: OTHER_ACCOUNT, refused: 'other_account' };
  if (error instanceof NeedsOperator) return { answer: REFUSED, refused: 'code_refused' };
  return error instanceof WrongLocation ? { answer: WRONG_SETTINGS, refused: 'wrong_settings' } : undefined;
}

async function openFlow(keys: SettingsKeys, sealed: string | undefined, now: Date): Promise<Flow | undefined> {
  if (sealed === undefined) return undefined;
  const { data } = Flow.safeParse(await unseal(keys, sealed, PLACE).catch(() => undefined));
  return data !== undefined && now.getTime() - data.startedAt < FLOW_S * 1_000 ? data : undefined;
}

function show(reply: FastifyReply, { status, ...page }: Answer): FastifyReply {
  return reply.code(status).type('text/html; charset=utf-8').send(writePage(page));
}

const nameOf = ({ name, locationId }: ConnectLink): string => (name === null ? locationId : `${name} (${locationId})`);

function askOwner(link: ConnectLink, vendor: string, href: string): Answer {
  return {
    status: 200,
    title: `Connect this restaurant with ${vendor}`,
    facts: { Restaurant: nameOf(link), 'Point of sale': vendor },
    text: [
      `Your ordering platform wants to send orders to ${vendor}. Sign in there with the account of this restaurant, and ` +
        'agree. Nobody here sees your password.',
      `This link works once, until ${link.expiresAt.toUTCString()}.`,
    ],
    action: { words: `Sign in at ${vendor}`, href },
  };
}

function thank(link: ConnectLink, vendor: string): Answer {
  return {
    status: 200,
    title: 'Done. You can close this page',
    facts: { Restaurant: nameOf(link), 'Point of sale': vendor },
    text: [`The restaurant is connected with ${vendor}. You have nothing more to do.`],
  };
}

const AGAIN = 'Open the link that you got, and start again.';
const DONE: Answer = { status: 200, title: '', text: [] };
const ENDED: Answer = {
  status: 404,
  title: 'This link does not work',
  text: ['A link works once, and for 72 hours. Ask the person who sent it for a new link.'],
};
const NOT_STARTED: Answer = {
  status: 400,
  title: 'This sign-in was not started here',
  text: [`It was started in another browser, or more than an hour ago. Nothing was changed. ${AGAIN}`],
};
const DENIED: Answer = {
  status: 200,
  title: 'The restaurant is not connected',
  text: [`You did not agree, or the sign-in did not succeed. Nothing was changed. To connect it after all: ${AGAIN}`],
};
const REFUSED: Answer = {
  status: 400,
  title: 'The sign-in was not accepted',
  text: [
    `It may have taken too long. Nothing was changed. ${AGAIN} If this happens twice, tell the person who sent it.`,
  ],
};
const OTHER_ACCOUNT: Answer = {
  status: 409,
  title: 'This is the account of another restaurant',
  text: [
    `The account that you signed in to does not have this restaurant. Nothing was changed. ${AGAIN} Sign in to the right account.`,
  ],
};
const WRONG_SETTINGS: Answer = {
  status: 409,
  title: 'The restaurant cannot be connected now',
  text: ['Nothing was changed. Tell the person who sent you the link: the settings of the restaurant are not right.'],
};
const VENDOR_AWAY: Answer = {
  status: 502,
  title: 'The point of sale does not answer',
  text: [`Nothing was changed, and your link still works. Wait some minutes. ${AGAIN}`],
};
const AWAY: Answer = {
  status: 503,
  title: 'This page does not work now',
  text: [`Your link still works. Wait some minutes. ${AGAIN}`],
};
const TOO_MANY: Answer = {
  status: 429,
  title: 'Too many wrong links',
  text: ['Too many wrong links were opened from your network. Wait a minute, and try again.'],
};
