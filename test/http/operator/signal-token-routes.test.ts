import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OPERATOR_TOKEN, askOperator, type Operator, type OperatorAnswer } from '../../../world/system/ask-operator.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { runJson } from '../../support/run-json.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

let stage: Stage;
let operator: Operator;

beforeAll(async () => {
  stage = await startStage({ env: { OPERATOR_TOKEN, PUBLIC_URL: 'https://expediter.example.com' } });
  operator = await askOperator(stage.app);
});
afterAll(() => stage?.stop());

const issue = (body: object): Promise<OperatorAnswer> => operator.post('/signal-tokens', body);

describe('a token for signals', () => {
  it('is shown once with its URL, which takes a signal, and only its hash and its sealed secret are stored', async () => {
    const answer = await issue({ kind: 'standard-webhooks', secrets: [SECRET], label: 'shop' });
    const { token, url, tokenId } = answer.body as Record<string, string>;
    expect(token).toMatch(/^exg_[\w-]{49}$/);
    expect(url).toBe(`https://expediter.example.com/signal?token=${token}`);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const listed = await operator.get('/signal-tokens');
    expect(listed.body['tokens']).toMatchObject([
      { tokenId, kind: 'standard-webhooks', label: 'shop', state: 'valid', expiresAt: null, lastUsedAt: null },
    ]);
    const [row] = await stage.query('SELECT * FROM signal_tokens');
    for (const text of [JSON.stringify(row), listed.text]) {
      expect(text).not.toContain(token);
      expect(text).not.toContain(SECRET);
    }
  });

  it('is revoked once and for all, and the audit has both acts', async () => {
    const { tokenId } = (await issue({})).body as Record<string, string>;
    const path = `/signal-tokens/${tokenId}`;
    expect(await operator.send('DELETE', path)).toMatchObject({ status: 200, body: { tokenId, revoked: true } });
    const listed = (await operator.get('/signal-tokens')).body['tokens'] as { tokenId: string; state: string }[];
    expect(listed.find((each) => each.tokenId === tokenId)).toMatchObject({ kind: 'plain', state: 'revoked' });
    const acts = await stage.query(
      `SELECT action, subject, after FROM audit LEFT JOIN audit_outcomes USING (audit_id)
       WHERE subject = $1 OR after = $1 ORDER BY audit_id`,
      [tokenId],
    );
    expect(acts).toMatchObject([
      { action: 'issue signal token', after: tokenId },
      { action: 'revoke signal token', subject: tokenId },
    ]);
    const unknown = '0195f0a4-6f7e-4c7c-9a39-5b6f2f0e2c11';
    expect(await operator.send('DELETE', `/signal-tokens/${unknown}`)).toMatchObject({ status: 404 });
  });

  it.each([
    [{ kind: 'saleor', jwksUrl: 'https://a:b@shop.example.com/jwks' }, 'jwksUrl must have no user'],
    [{ kind: 'shopify' }, 'secrets must be given for shopify'],
    [{ kind: 'plain', secrets: ['a'] }, 'secrets must not be given for plain'],
    [{ kind: 'saleor' }, 'jwksUrl must be given for saleor'],
    [
      { kind: 'shopify', secrets: ['a'], jwksUrl: 'https://shop.example.com/' },
      'jwksUrl must not be given for shopify',
    ],
    [{ kind: 'standard-webhooks', secrets: ['short'] }, '24 to 64 bytes in base64'],
    [{ kind: 'saleor', jwksUrl: 'http://shop.example.com/jwks.json' }, 'plain http'],
    [{ kind: 'saleor', jwksUrl: 'https://169.254.169.254/jwks.json' }, 'link-local'],
    [{ kind: 'magento' }, 'kind'],
  ])('is not made from %j, and the answer says what would be right', async (body, detail) => {
    const answer = await issue(body);
    expect(answer).toMatchObject({ status: 400 });
    expect(answer.text).toContain(detail);
    expect(answer.text).not.toContain('short');
  });

  it('is made, listed and revoked by commands', async () => {
    const env = { ...stage.env };
    const made = await runJson<{ tokenId: string; token: string }>(env, [
      'signal-token',
      'issue',
      '--label',
      'app',
      '--expires',
      '90d',
    ]);
    expect(made).toMatchObject({ token: expect.stringMatching(/^exg_/) as string });
    const { tokenId } = made;
    expect(await runJson(env, ['signal-token', 'revoke', tokenId])).toMatchObject({ revoked: true });
    expect(await runJson(env, ['signal-token', 'list'])).toContainEqual(
      expect.objectContaining({ tokenId, label: 'app', state: 'revoked' }),
    );
  });
});
