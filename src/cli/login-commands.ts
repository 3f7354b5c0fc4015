import { setTimeout as sleep } from 'node:timers/promises';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { z } from 'zod';
import { boundedFetch } from '../core/egress/bounded-fetch.ts';
import { NotSignedIn, askService, reasonOf } from '../operators/ask-service.ts';
import { NotDone } from '../operators/operation.ts';
import { listProviders } from '../operators/provider-operations.ts';
import { examples, print } from './print.ts';
import { forgetLogin, readServiceUrl, storeLogin } from './stored-login.ts';

const request = boundedFetch();
const ANSWER_MS = 30_000;

const Begun = z.object({
  handle: z.string(),
  userCode: z.string(),
  verificationUri: z.string(),
  verificationUriComplete: z.string().nullable(),
  intervalS: z.number(),
  expiresInS: z.number(),
});
const Polled = z.discriminatedUnion('state', [
  z.object({ state: z.literal('pending'), intervalS: z.number() }),
  z.object({ state: z.literal('done'), token: z.string(), expiresInS: z.number() }),
]);
const Refused = z.object({ detail: z.string() });

export function addLoginCommands(program: Command): void {
  program
    .command('login')
    .description('sign in at a service, whose API the other commands then use instead of a database')
    .argument('<url>', 'where its operator API and its console are, such as https://operators.example.com')
    .option('--token', 'read a named token from standard input, instead of signing in at the issuer of OIDC_ISSUER')
    .addHelpText(
      'after',
      `
Without --token, this prints a URL and a code. Open the URL in any browser, sign in, and enter the code. You are then
signed in for 12 hours, with the roles that you have at the console. The login is stored in
~/.config/expediter/login.json, which only you can read.

A command uses the service of EXPEDITER_URL, with EXPEDITER_TOKEN or the login there; else the database of DATABASE_URL;
else the service of the login. Only "migrate", "rekey", "recover" and "doctor --local" need the database.
${examples('expediter login https://operators.example.com', 'expediter login https://operators.example.com --token < token.txt')}`,
    )
    .action(async (given: string, { token: fromInput }: { token?: true }, command: Command) => {
      const url = readServiceUrl(given);
      const token = fromInput ? (await text(process.stdin)).trim() : await signIn(url);
      // A wrong token is found now, and not by the next command.
      await askService({ url, token })(listProviders, {}).catch((error: unknown) => {
        throw error instanceof NotSignedIn ? new NotDone(400, `${url} does not accept this token`) : error;
      });
      const file = await storeLogin(process.env, { url, token });
      print(command, { url, file }, `You are signed in at ${url}. The login is in ${file}`);
    });

  program
    .command('logout')
    .description('end the login, at the service too. A named token stays valid until it is revoked')
    .addHelpText('after', examples('expediter logout'))
    .action(async (_options: object, command: Command) => {
      const login = await forgetLogin(process.env);
      if (login === undefined) throw new NotDone(404, 'You are not signed in.');
      const { url, token } = login;
      const answer = await request(`${url}/login`, {
        method: 'DELETE',
        headers: { authorization: `Bearer ${token}` },
      }).catch(() => undefined);
      const also = answer?.ok === true ? '' : ' on this machine. The service did not answer';
      print(command, { url }, `You are signed out at ${url}${also}`);
    });
}

/** Signs a person in by a device code. @returns a token for the operator API */
async function signIn(url: string): Promise<string> {
  const begun = Begun.parse(await send(`${url}/login/device`, {}));
  const { handle, userCode, verificationUri, verificationUriComplete, expiresInS } = begun;
  const direct =
    verificationUriComplete === null ? '' : `\nOr open this URL, which has the code: ${verificationUriComplete}`;
  process.stderr.write(`Open ${verificationUri} and enter the code ${userCode}${direct}\n`);
  const endAt = performance.now() + expiresInS * 1_000;
  let { intervalS } = begun;
  while (performance.now() < endAt) {
    await sleep(intervalS * 1_000);
    const polled = Polled.parse(await send(`${url}/login/token`, { handle }));
    if (polled.state === 'done') return polled.token;
    intervalS = Math.max(intervalS, polled.intervalS);
  }
  throw new Error('The code has expired. Run expediter login again.');
}

async function send(url: string, body: object): Promise<unknown> {
  const answer = await request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(ANSWER_MS),
  }).catch((error: unknown) => {
    throw new Error(`${new URL(url).origin} does not answer: ${reasonOf(error, ANSWER_MS)}`, { cause: error });
  });
  const json: unknown = await answer.json().catch(() => undefined);
  if (answer.ok) return json;
  throw new Error(Refused.safeParse(json).data?.detail ?? `${new URL(url).origin} answered ${answer.status}`);
}
