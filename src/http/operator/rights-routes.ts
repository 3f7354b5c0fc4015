import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { givenInWords, recordAtEach } from '../../core/operators/given-right.ts';
import {
  NewOperatorGrant,
  OperatorGrant,
  addOperatorGrant,
  listOperatorGrants,
  removeOperatorGrant,
} from '../../core/operators/operator-grants.ts';
import {
  NewOperatorToken,
  OperatorToken,
  issueOperatorToken,
  listOperatorTokens,
  revokeOperatorToken,
} from '../../core/operators/operator-tokens.ts';
import { failures, json } from './answers.ts';
import { locationsWithin, operatorOf } from './guard-routes.ts';
import type { OperatorDeps } from './mount-routes.ts';
import { When } from '../../operators/requests.ts';

const tags = ['Operators'];
const EXAMPLE = '0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11';

const TokenParams = z.strictObject({
  tokenId: z.uuid({ error: `is not the id of a token, such as ${EXAMPLE}; never the token itself` }).meta({
    description: 'Its id; never the token itself.',
    examples: [EXAMPLE],
  }),
});
const GrantParams = z.strictObject({
  grantId: z.uuid({ error: `is not the id of a grant, such as ${EXAMPLE}` }).meta({ examples: [EXAMPLE] }),
});
const IssueToken = NewOperatorToken.extend({
  expiresAt: When.refine((at) => at.getTime() > Date.now(), { error: 'is not in the future' })
    .nullable()
    .optional()
    .meta({ description: 'By default in 90 days; with null it never ends.' }),
});

/**
 * Who may what. An admin of some locations sees, gives and takes only what opens nothing elsewhere.
 *
 * - `GET /operators/tokens`, `POST /operators/tokens`, `POST /operators/tokens/:tokenId/revoke` named tokens
 * - `GET /operators/grants`, `POST /operators/grants`, `POST /operators/grants/:grantId/remove` roles of people
 */
export function rightsRoutes(scope: FastifyInstance, { pool, identify }: OperatorDeps): void {
  const api = scope.withTypeProvider<ZodTypeProvider>();

  /** Names who gets or loses what, for the audit. */
  const note = ({ act }: FastifyRequest, given: Parameters<typeof givenInWords>[0]): void => {
    if (act !== undefined) act.after = givenInWords(given);
  };
  const noteDone = async (request: FastifyRequest, done: OperatorToken | OperatorGrant): Promise<void> => {
    note(request, done);
    if (request.act !== undefined) await recordAtEach(pool, operatorOf(request), request.act, done);
  };

  api.get(
    '/operators/tokens',
    {
      schema: {
        operationId: 'listOperatorTokens',
        tags,
        summary: 'Named tokens',
        description: 'Those that are over as well; never a token itself.',
        response: { 200: json('All of them.', z.object({ tokens: z.array(OperatorToken) })), ...failures() },
      },
    },
    async (request) => ({ tokens: await listOperatorTokens(pool, locationsWithin(request)) }),
  );

  api.post(
    '/operators/tokens',
    {
      schema: {
        operationId: 'issueOperatorToken',
        tags,
        summary: 'Make a named token',
        description: 'It is in this answer, and nowhere else: only its SHA-256 is stored.',
        body: IssueToken,
        response: {
          200: json('The token.', OperatorToken.extend({ token: z.string() }).meta({ id: 'IssuedOperatorToken' })),
          ...failures(409, 413, 415),
        },
      },
    },
    async (request) => {
      note(request, request.body);
      const issued = await issueOperatorToken(pool, request.body, locationsWithin(request));
      if ('refused' in issued) throw scope.httpErrors.conflict(issued.refused);
      await noteDone(request, issued);
      return issued;
    },
  );

  api.post(
    '/operators/tokens/:tokenId/revoke',
    {
      schema: {
        operationId: 'revokeOperatorToken',
        tags,
        summary: 'Shut a named token out, with the sessions that it opened, within five seconds',
        description: 'For good; also where it was already.',
        params: TokenParams,
        response: { 200: json('It opens nothing any more.', OperatorToken), ...failures(404, 413, 415) },
      },
    },
    async (request) => {
      const revoked = await revokeOperatorToken(pool, request.params.tokenId, locationsWithin(request));
      if (revoked === undefined) throw scope.httpErrors.notFound('no named token has this id');
      identify.lookAnew();
      await noteDone(request, revoked);
      return revoked;
    },
  );

  api.get(
    '/operators/grants',
    {
      schema: {
        operationId: 'listOperatorGrants',
        tags,
        summary: 'Roles that people have who sign in',
        description: 'Somebody has those of their address and of all their groups.',
        response: { 200: json('All of them.', z.object({ grants: z.array(OperatorGrant) })), ...failures() },
      },
    },
    async (request) => ({ grants: await listOperatorGrants(pool, locationsWithin(request)) }),
  );

  api.post(
    '/operators/grants',
    {
      schema: {
        operationId: 'addOperatorGrant',
        tags,
        summary: 'Give roles to an address or to a group, within five seconds',
        description: 'Once: giving the same again changes nothing.',
        body: NewOperatorGrant,
        response: { 200: json('They are given.', OperatorGrant), ...failures(409, 413, 415) },
      },
    },
    async (request) => {
      note(request, request.body);
      const added = await addOperatorGrant(pool, request.body);
      if ('refused' in added) throw scope.httpErrors.conflict(added.refused);
      await noteDone(request, added);
      identify.lookAnew();
      return added;
    },
  );

  api.post(
    '/operators/grants/:grantId/remove',
    {
      schema: {
        operationId: 'removeOperatorGrant',
        tags,
        summary: 'Take roles back, within five seconds',
        description: 'Sessions go on with what is left.',
        params: GrantParams,
        response: { 200: json('What was taken.', OperatorGrant), ...failures(404, 413, 415) },
      },
    },
    async (request) => {
      const removed = await removeOperatorGrant(pool, request.params.grantId, locationsWithin(request));
      if (removed === undefined) throw scope.httpErrors.notFound('no grant has this id');
      identify.lookAnew();
      await noteDone(request, removed);
      return removed;
    },
  );
}
