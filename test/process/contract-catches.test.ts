/** A green suite must mean something: each mistake in the guide's template fails the claim that names it. */
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { fixtures } from '../../examples/provider-template/test/fixtures.ts';
import type { Provider } from '../../src/core/domain/provider.ts';
import { providerContract } from '../../packages/provider-kit/contract/contract.ts';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));

const KEY = 'different orders have different keys at the POS';
const ANEW = 'make one ticket although the order changed when it was fetched again';
const SEED = 'have a seed that depends on every setting in the token request';
const SIGNAL = 'are requested with the signal of obtain, not of the order, because other orders wait for them';
const LASTS = 'expire after as many seconds as the POS says';
const ACCOUNT = 'another restaurant has a different account';
const SAME_ACCOUNT = 'the account stays the same with new secrets';
const LIMIT = 'with TryAgain until the Retry-After of a 429 is over, even with new secrets';
const OWN_WORDS = "without the POS's own message, which may quote the member";
const STORE = "returns no event for another store's webhook with the same secret";
const CHECK = 'throws NeedsOperator after the POS refuses the credentials, although a stored token is left';
const ITEMS = 'every item and modifier in the ordered quantity';
const PRICES = 'the price of each item and modifier';
const GUEST = "the member's name, telephone and e-mail";
const ADDRESS = 'the whole address of a delivery, and the directions to the door';
const WANTED = 'the requested time, or no time if the order is for as soon as possible';
const DISCOUNTS = "discounts in EUR, so that the till's total is the paid amount";
const SOLD_OUT = 'have the reasonCode item_unavailable for sold out, and the itemIds burger-classic, beer-pale-ale';
const HOSTILE = 'does not return cancelled if the POS answers 200 with an undocumented body';
const TOO_LATE = 'throws GiveUp with a reason for the member after the POS reports READY';
const READY_AT = "of a pickup order are read as estimatedReadyAt, with the POS's own time";
const TIP = 'tip and fee as separate amounts';

const [CREATE, TOKEN, WRITE, CANCEL] = ['create-order.ts', 'obtain-token.ts', 'write-order.ts', 'cancel-order.ts'];
const SEEDED = 'seed: { clientId, clientSecret, baseUrl }';
const ACCOUNT_OF = 'account: ({ baseUrl, storeId }) => `${baseUrl} ${storeId}`';
const THEIRS = 'Object(Object(answer.json).error).message';
const REFUSED = 'throw refusalOf(answer, order, context.settings);';

/** What stands in place of it, where that is long. */
const OF_ORDER = 'obtainToken(context, context.signal)';
const KEY_OF_ALL = 'keyOf(order: CanonicalOrder): string {\n$1(JSON.stringify(order))';
const WITH_SECRET = 'account: ({ storeId, clientSecret }) => `${storeId} ${clientSecret}`';
const NO_SIGNAL = '{ signal: new AbortController().signal, fetch },\n';
const BY_SECRET = 'withinLimits(settings.clientSecret,';
const OF_MEMBER = "throw new GiveUp(order.notes ?? '', { reason: '' });";
const NO_DISCOUNT = 'discountsOf({ ...order, money: { ...money, discount: 0 } })';
const KEPT = `= await context.credentials
    .accessToken({
      seed: { clientId: context.settings.clientId },
      obtain: async () => ({ accessToken: 'kept', expiresIn: 3600 }),
    })
    .then(() => ({ status: 200, headers: new Headers(), json: {} }))
    .catch(`;

/** Each with the file of the template that it is made in, what stands there, what is written, and the claim it breaks. */
const MISTAKES: readonly [of: string, file: string, right: string | RegExp, wrong: string, claim: string][] = [
  ["a key made from the order's contents", CREATE, /keyOf\(\{.*\{\n(.*)\(serviceOrderId\)/, KEY_OF_ALL, ANEW],
  ['a key of 8 hex digits', CREATE, ".digest('hex')", ".digest('hex').slice(0, 8)", KEY],
  ['a seed without the base URL', TOKEN, SEEDED, 'seed: { clientId, clientSecret }', SEED],
  ['a seed without the secret', TOKEN, SEEDED, 'seed: { clientId, baseUrl }', SEED],
  ['a seed without the client', TOKEN, SEEDED, 'seed: { clientSecret, baseUrl }', SEED],
  ['a token requested with the signal of one order', TOKEN, 'obtainToken(context, signal)', OF_ORDER, SIGNAL],
  ['a token requested without a signal', TOKEN, '{ signal, fetch },\n', NO_SIGNAL, SIGNAL],
  ['expires_in taken for milliseconds', TOKEN, 'expiresIn: expires_in', 'expiresIn: expires_in / 1000', LASTS],
  ['expires_in taken for minutes', TOKEN, 'expiresIn: expires_in', 'expiresIn: expires_in * 60', LASTS],
  ['a constant account', 'index.ts', ACCOUNT_OF, "account: () => 'acme'", ACCOUNT],
  ["the vendor's account", 'index.ts', ACCOUNT_OF, 'account: ({ baseUrl }) => baseUrl', ACCOUNT],
  ['no account', 'index.ts', ACCOUNT_OF, 'account: undefined', ACCOUNT],
  ['a secret in the account', 'index.ts', ACCOUNT_OF, WITH_SECRET, SAME_ACCOUNT],
  ['a limit counted by a secret', 'call-acme.ts', 'withinLimits(storeId,', BY_SECRET, LIMIT],
  ["the POS's words as a reason", CREATE, '...REASONS.get(code),', `reason: ${THEIRS},`, OWN_WORDS],
  ["the POS's words in an error", CREATE, '(${code})`', `(\${${THEIRS}})\``, OWN_WORDS],
  ["the member's words in an error", CREATE, REFUSED, OF_MEMBER, OWN_WORDS],
  [
    'a webhook of another store that is not ignored',
    'translate-webhook.ts',
    'storeId !== settings.storeId || ',
    '',
    STORE,
  ],
  ['a check that passes with a stored token', 'check.ts', /= await callAcme\(.*/, KEPT, CHECK],
  ['the quantity 1 for every modifier', WRITE, 'count: modifier.quantity', 'count: 1', ITEMS],
  ['no price of an item', WRITE, /price: item\..*/, '', PRICES],
  ['no price of a modifier', WRITE, /price: modifier\..*/, '', PRICES],
  ['no name', WRITE, 'cutText(member.name, NAME_MAX)', "'Guest'", GUEST],
  ['no telephone', WRITE, 'phone: member.phone', '', GUEST],
  ['no second line of an address', WRITE, '[line1, line2]', '[line1]', ADDRESS],
  ['no city', WRITE, '    city,\n', '', ADDRESS],
  ['no postcode', WRITE, '    postcode: postalCode,\n', '', ADDRESS],
  ['no instructions', WRITE, /directions: .*/, '', ADDRESS],
  ['no wanted time', WRITE, 'dueOf(fulfillment.requestedAt, now)', 'undefined', WANTED],
  ['no discounts', WRITE, 'discountsOf(order)', NO_DISCOUNT, DISCOUNTS],
  ['discounts by their names alone', WRITE, 'discountsOf(order)', '(order.discounts ?? [])', DISCOUNTS],
  ['the ids of items at the POS in place of ours', CREATE, /skus\?\.flatMap[^]*?\n    \),/, 'skus,', SOLD_OUT],
  ['one code for every refusal', CREATE, '...REASONS.get(code)', 'code', SOLD_OUT],
  ['any 200 read as a cancelled order', CANCEL, '.success) return', '.success || true) return', HOSTILE],
  ['a cancel that is never too late', CANCEL, 'httpStatus >= 300', 'httpStatus >= 500', TOO_LATE],
  [
    'the estimate of a pickup as that of a delivery',
    'translate-webhook.ts',
    'estimatedReadyAt:',
    'estimatedDeliveryAt:',
    READY_AT,
  ],
  ['no tip', WRITE, 'amount(money.tip)', 'amount(0)', TIP],
  ['tip and fee swapped', WRITE, /tip: (.*),\n(.*)fee: (.*),/, 'tip: $3,\n$2fee: $1,', TIP],
];

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'mistakes-'));
  await symlink(join(PROJECT, 'node_modules'), join(folder, 'node_modules'));
});
afterAll(() => rm(folder, { recursive: true }));

/** The template's provider, with a mistake or without. @returns the suite's claims about it by their names */
async function claimsAbout(name: string, mistake?: (file: string, text: string) => string) {
  const copy = join(folder, name);
  const source = join(PROJECT, 'examples/provider-template/src');
  await mkdir(copy);
  for (const file of await readdir(source)) {
    const text = await readFile(join(source, file), 'utf8');
    await writeFile(join(copy, file), mistake?.(file, text) ?? text);
  }
  const { default: provider } = (await import(pathToFileURL(join(copy, 'index.ts')).href)) as { default: Provider };
  const claims = new Map<string, () => void | Promise<void>>();
  providerContract(provider, fixtures, {
    describe: (_name, body) => body(),
    it: (claim, body) => void claims.set(claim, body),
  });
  return claims;
}

it('the template of a provider passes the contract', async () => {
  const claims = await claimsAbout('right');
  for (const claim of new Set(MISTAKES.map(([, , , , claim]) => claim))) await claims.get(claim)?.();
});

it.each(MISTAKES.map((mistake, nth) => [mistake[0], nth, mistake] as const))(
  'the contract fails for a provider with this mistake: %s',
  async (_of, nth, mistake) => {
    const [, wrongFile, right, wrong, claim] = mistake;
    const claims = await claimsAbout(`mistake-${nth}`, (file, text) => {
      if (file !== wrongFile) return text;
      const changed = text.replace(right, wrong);
      expect(changed, 'the mistake is made').not.toBe(text);
      return changed;
    });
    const body = claims.get(claim) ?? expect.unreachable(`there is no claim "${claim}"`);
    await expect((async () => body())()).rejects.toMatchObject({ name: 'AssertionError' });
  },
);
