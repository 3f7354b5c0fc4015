import cookie from '@fastify/cookie';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Pool } from 'pg';
import { z } from 'zod';
import { describeError } from '../../core/domain/classify-error.ts';
import { NeedsOperator, TryAgain } from '../../core/domain/errors.ts';
import { confirmGrant, endGrant, holdGrant, openGrant, OtherAccount } from '../../core/locations/connect-grants.ts';
import { connectLocation } from '../../core/locations/connect-location.ts';
import {
  authorisationOf,
  findConnectLink,
  makeState,
  openLinked,
  reopenConnectLink,
  type ConnectLink,
} from '../../core/locations/connect-links.ts';
import { WrongLocation } from '../../core/locations/locations.ts';
import { seal, unseal, type SettingsKeys } from '../../core/locations/settings-key.ts';
import { audited } from '../../core/operators/audit.ts';
import type { Actor } from '../../core/operators/operator.ts';
import { isSameOrigin } from '../console/page-files.ts';
import { isDatabaseAway } from '../operator/answer-errors.ts';
import type { OperatorDeps } from '../operator/operator-deps.ts';
import { actionFrom } from '../request.ts';
import { TooManyFailures } from '../throttle-failures.ts';
import { sendPage, servePages, type Item, type Page } from './connect-page.ts';

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
 * Mounts the public pages of connect links. No GET uses a link up, so programs that preview links do no harm.
 *
 * - `GET /:token` the page that names the location and the vendor, with a cookie that binds the sign-in to this browser;
 *   `404` if the link cannot be used
 * - `POST /:token` `state`, a form of that page: to the vendor's page
 * - `GET /callback` where the vendor's page redirects the browser to. The access waits for the owner's confirmation
 * - `GET /confirm` the page that names the account, `POST /confirm` `state` and `answer`, a form of that page
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
  // Without a referrer to our own pages, a browser does not tell us the origin of a form.
  servePages(scope, { 'referrer-policy': 'same-origin' });
  scope.setNotFoundHandler((_request, reply) => show(reply, ENDED));
  scope.setErrorHandler(answerError);

  const publicUrl = translating.publicUrl === '' ? undefined : translating.publicUrl;
  const grants = { ...deps, rules: { registry, keys: translating.keys, publicUrl } };
  const find = (request: FastifyRequest, token: string): Promise<ConnectLink | undefined> =>
    judge(request, 'connect_link', [token], () => findConnectLink(pool, token));
  const vendorOf = ({ integration }: ConnectLink): string => registry.get(integration)?.authorisation?.vendor ?? '';
  const flowOf = (request: FastifyRequest): Promise<Flow | undefined> =>
    openFlow(translating.keys, request.cookies[cookieName], now());
  /** The sign-in of this browser, if the form that was sent is on a page of its own. */
  const flowOfForm = async (request: FastifyRequest<{ Body: URLSearchParams | null }>): Promise<Flow | undefined> => {
    const flow = await flowOf(request);
    // guard: connect-own-page
    if (!isSameOrigin(request, URL.parse(origin)?.origin)) return undefined;
    // guard: connect-own-form
    return flow?.state === request.body?.get('state') ? flow : undefined;
  };
  /** The link of a sign-in, with the grant that waits there. */
  const granted = async (flow: Flow | undefined) => {
    const link = flow && (await reopenConnectLink(pool, flow.linkId));
    const grant = link && (await openGrant(grants, link, flow.state));
    return grant && { link, grant };
  };

  scope.get<{ Params: { token: string } }>('/:token', async (request, reply) => {
    const link = await find(request, request.params.token);
    if (link === undefined) return show(reply, ENDED);
    if (link.sealedGrant !== null) return reply.redirect('confirm', 303);
    const known = await flowOf(request);
    const state = known?.linkId === link.linkId ? known.state : makeState();
    const flow: Flow = { linkId: link.linkId, state, startedAt: now().getTime() };
    reply.setCookie(cookieName, await seal(translating.keys, flow, PLACE), { ...attributes, maxAge: FLOW_S });
    return show(reply, askOwner(link, vendorOf(link), state));
  });

  scope.post<{ Params: { token: string }; Body: URLSearchParams | null }>('/:token', async (request, reply) => {
    const link = await find(request, request.params.token);
    if (link === undefined) return show(reply, ENDED);
    const flow = await flowOfForm(request);
    if (flow?.linkId !== link.linkId) return show(reply, NOT_STARTED);
    try {
      const { provider, settings } = await openLinked(pool, grants.rules, link);
      const page = authorisationOf(provider).page(settings, { redirectUri, state: flow.state });
      // Not a redirect, because the content security policy of a form covers all redirects that follow.
      const vendor = vendorOf(link);
      const action = { words: `Sign in at ${vendor}`, href: page };
      return show(reply.header('refresh', `0; url=${page}`), { status: 200, title: `To ${vendor}`, text: [], action });
    } catch (error) {
      if (!(error instanceof NeedsOperator || error instanceof WrongLocation)) throw error;
      request.log.warn({ locationId: link.locationId, problem: error.message }, 'a connect link leads nowhere');
      return show(reply, WRONG_SETTINGS);
    }
  });

  scope.get('/callback', { exposeHeadRoute: false }, async (request, reply) => {
    const query = new URLSearchParams(/\?.*/s.exec(request.url)?.[0]);
    const [code, state] = [query.get('code') ?? '', query.get('state')];
    const flow = await flowOf(request);
    if (flow === undefined) return show(reply, NOT_STARTED);
    // HubRise documents no state in the answer to a refusal, which changes nothing.
    if (query.has('error')) return show(reply.clearCookie(cookieName, attributes), DENIED);
    // guard: connect-state
    if (state !== flow.state) return show(reply, NOT_STARTED);
    const link = await reopenConnectLink(pool, flow.linkId);
    if (link === undefined) return show(reply.clearCookie(cookieName, attributes), ENDED);
    if (link.sealedGrant === null) {
      // Throttles senders of invented codes, because each code costs a request to the vendor.
      const held = await judge(request, 'connect_code', [code], async () => {
        if (code === '' || code.length > CODE_MAX) return undefined;
        const answer = await recorded(pool, request, link, 'grant by link', async () =>
          (await holdGrant(grants, link, code, state)) ? WAITS : { answer: ENDED, refused: 'ended' },
        );
        return answer === REFUSED ? undefined : answer;
      });
      if (held !== WAITS.answer) return show(reply, held ?? REFUSED);
    }
    // The code is then in no address.
    return reply.redirect('confirm', 303);
  });

  scope.get('/confirm', async (request, reply) => {
    const flow = await flowOf(request);
    const { link, grant } = (await granted(flow)) ?? {};
    if (flow === undefined || grant === undefined || link === undefined) return show(reply, WAITING);
    return show(reply, askWhether(link, vendorOf(link), grant.account, flow.state));
  });

  scope.post<{ Body: URLSearchParams | null }>('/confirm', async (request, reply) => {
    const { link, grant } = (await granted(await flowOfForm(request))) ?? {};
    if (link === undefined || grant === undefined) return show(reply, NOT_STARTED);
    const answer = await recorded(pool, request, link, 'connect by link', async () => {
      if (request.body?.get('answer') !== 'yes') {
        await endGrant(grants, link);
        return { answer: DENIED, refused: 'not_confirmed' };
      }
      if (!(await confirmGrant(grants, link, grant.changes))) return { answer: ENDED, refused: 'ended' };
      deps.wake();
      return {
        answer: thank(link, vendorOf(link)),
        after: (await connectWebhook(grants, request, link)) ? 'connected' : 'granted',
      };
    });
    return show(answer === VENDOR_AWAY ? reply : reply.clearCookie(cookieName, attributes), answer);
  });
}

function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (error instanceof TooManyFailures) {
    reply.headers({ 'retry-after': error.retryAfterS, connection: 'close' });
    return show(reply, TOO_MANY);
  }
  if (((error as { statusCode?: number }).statusCode ?? 500) < 500) return show(reply, NOT_STARTED);
  if (!isDatabaseAway(error)) request.log.error({ err: error }, 'a connect page failed');
  return show(reply, AWAY);
}

/** @returns whether nothing is left to do by hand */
async function connectWebhook(
  deps: Parameters<typeof confirmGrant>[0],
  { log }: FastifyRequest,
  { locationId }: ConnectLink,
): Promise<boolean> {
  const { publicUrl } = deps.rules;
  if (publicUrl === undefined) return false;
  let problem: string | undefined;
  try {
    const rules = { ...deps.rules, publicUrl };
    const { todo } = await connectLocation({ ...deps, rules }, locationId, { isSeen: false });
    if (todo.length === 0) return true;
  } catch (error) {
    problem = error instanceof WrongLocation ? error.message : describeError(error);
  }
  log.warn({ locationId, problem }, 'a restaurant granted access; connect its webhook: expediter provider connect');
  return false;
}

type Ended = { answer: Answer; after: string } | { answer: Answer; refused: string };

/** Does what an owner asked for. The audit records it. */
async function recorded(
  pool: Pool,
  request: FastifyRequest,
  { linkId, locationId }: ConnectLink,
  act: string,
  work: () => Promise<Ended>,
): Promise<Answer> {
  const action = { action: act, subject: linkId, locationId, ...actionFrom(request) };
  const tried = (): Promise<Ended> =>
    work().catch((error: Error) => {
      const refused = refusalOf(error);
      if (refused === undefined) throw error;
      request.log.warn({ locationId, linkId, problem: error.message }, 'a restaurant could not grant access');
      return refused;
    });
  const after = (ended: Ended): string => ('after' in ended ? ended.after : ended.refused);
  return (await audited(pool, OWNER, action, tried, after)).answer;
}

function refusalOf(error: unknown): { answer: Answer; refused: string } | undefined {
  if (error instanceof OtherAccount) return { answer: OTHER_ACCOUNT, refused: 'other_account' };
  if (error instanceof TryAgain) return { answer: VENDOR_AWAY, refused: 'vendor_away' };
  if (error instanceof NeedsOperator) return { answer: REFUSED, refused: 'code_refused' };
  return error instanceof WrongLocation ? { answer: WRONG_SETTINGS, refused: 'wrong_settings' } : undefined;
}

async function openFlow(keys: SettingsKeys, sealed: string | undefined, now: Date): Promise<Flow | undefined> {
  if (sealed === undefined) return undefined;
  const { data } = Flow.safeParse(await unseal(keys, sealed, PLACE).catch(() => undefined));
  return data !== undefined && now.getTime() - data.startedAt < FLOW_S * 1_000 ? data : undefined;
}

function show(reply: FastifyReply, { status, ...page }: Answer): FastifyReply {
  return sendPage(reply, status, page);
}

const nameOf = ({ name, locationId }: ConnectLink): string => (name === null ? locationId : `${name} (${locationId})`);

function askOwner(link: ConnectLink, vendor: string, state: string): Answer {
  return {
    status: 200,
    title: `Connect this restaurant with ${vendor}`,
    facts: { Restaurant: nameOf(link), 'Point of sale': vendor },
    text: [
      `Your ordering platform wants to send orders to ${vendor}. Sign in there with the account of this restaurant, and ` +
        'agree. Nobody here sees your password.',
      `This link works once, until ${link.expiresAt.toUTCString()}.`,
    ],
    items: [ask(state, { start: `Sign in at ${vendor}` })],
  };
}

/** A form. The state proves that our page sent it. */
function ask(state: string, answers: Readonly<Record<string, string>>): Item {
  const buttons = Object.entries(answers).map(([value, words]) => ({ value, words }));
  return { text: [], name: 'state', value: state, buttonName: 'answer', buttons };
}

function askWhether(link: ConnectLink, vendor: string, account: string, state: string): Answer {
  return {
    status: 200,
    title: 'Is this the right account?',
    facts: { Restaurant: nameOf(link), [`Account at ${vendor}`]: account },
    text: [
      `You granted access to ${account} for ${nameOf(link)}. Confirm that within ten minutes. Otherwise the access ends.`,
    ],
    items: [ask(state, { yes: 'Yes, connect', no: 'No, end the access' })],
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
const WAITS: Ended = { answer: { status: 200, title: '', text: [] }, after: 'waits' };
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
const WAITING: Answer = {
  status: 409,
  title: 'Somebody has signed in by this link',
  text: [`They have not confirmed it yet. If it was not you in this browser, wait ten minutes. ${AGAIN}`],
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
