import { hash, randomBytes } from 'node:crypto';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { z } from 'zod';
import { boundedFetch } from '../core/egress/bounded-fetch.ts';
import { printError } from '../observe/terminal-text.ts';
import { NotSignedIn, askService, reasonOf } from '../operators/ask-service.ts';
import { NotDone } from '../core/operators/not-done.ts';
import { listProviders } from '../operators/provider-operations.ts';
import { examples, print } from '../terminal/print.ts';
import { forgetLogin, readServiceUrl, storeLogin } from '../terminal/stored-login.ts';

const request = boundedFetch();
const ANSWER_MS = 30_000;

/** The browser must bring the code within this time. */
const WAIT_MS = 5 * 60_000;

const Token = z.object({ token: z.string() });
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
Without --token, this prints a URL. Open it in a browser on this machine, sign in, and press "Allow". You are then signed
in for 12 hours, with the roles that you have at the console. In a remote shell, use --token. The login is stored in
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

/**
 * Signs a person in by a page of the console, which sends the browser here with a code: a loopback redirect with PKCE,
 * https://www.rfc-editor.org/rfc/rfc8252
 * @returns a token for the operator API
 */
async function signIn(url: string): Promise<string> {
  const [verifier, state] = [randomBytes(32).toString('base64url'), randomBytes(32).toString('base64url')];
  const { origin } = new URL(url);
  const redeem = async ({ code, error, iss }: Record<string, string>): Promise<string> => {
    // The console of another service may have been opened. Its code must not be sent to this one.
    if (iss !== origin) throw new Error(`The answer came from another service, not from ${origin}.`);
    if (error !== undefined) throw new Error('The sign-in was refused in the browser.');
    return Token.parse(await (await send(`${url}/login/token`, { code, verifier })).json()).token;
  };
  const { default: fastify } = await import('fastify');
  const page = fastify({ forceCloseConnections: true });
  const signedIn = Promise.withResolvers<string>();
  page.get<{ Querystring: Record<string, string> }>('/', { exposeHeadRoute: false }, async ({ query }, reply) => {
    if (query['state'] !== state) return reply.code(400).send('This sign-in was not started by the command here.');
    const done = redeem(query);
    // The command ends after the browser has the answer.
    reply.raw.once('close', () => void done.then(signedIn.resolve, signedIn.reject));
    return done.then(
      () => 'You are signed in. Close this page.',
      (error: Error) => reply.code(400).send(`You are not signed in. ${error.message}`),
    );
  });
  const timer = setTimeout(
    () => signedIn.reject(new Error(`Nobody signed in within ${WAIT_MS / 60_000} minutes. Run expediter login again.`)),
    WAIT_MS,
  );
  try {
    const { port } = new URL(await page.listen({ host: '127.0.0.1', port: 0 }));
    const challenge = hash('sha256', verifier, 'base64url');
    const asked = `${url}/login?${new URLSearchParams({ port, challenge, state }).toString()}`;
    const leadsTo = URL.parse((await send(asked)).headers.get('location') ?? '');
    if (leadsTo?.origin !== origin) {
      throw new NotDone(
        400,
        `People sign in at ${leadsTo?.origin ?? 'another URL'}. Run expediter login with that URL.`,
      );
    }
    printError(
      `Open this URL in a browser on this machine, and allow the sign-in of 127.0.0.1:${port}:\n${asked}\n` +
        `In a remote shell, use expediter login --token, or first forward the port: ssh -L ${port}:127.0.0.1:${port}`,
    );
    return await signedIn.promise;
  } finally {
    clearTimeout(timer);
    await page.close();
  }
}

/** Sends a GET, or a POST with a body. @throws Error that says why, unless the answer is 2xx or a redirect */
async function send(url: string, body?: object): Promise<Response> {
  const { origin } = new URL(url);
  const answer = await request(url, {
    ...(body !== undefined && {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
    signal: AbortSignal.timeout(ANSWER_MS),
  }).catch((error: unknown) => {
    throw new Error(`${origin} does not answer: ${reasonOf(error, ANSWER_MS)}`, { cause: error });
  });
  if (answer.status < 400) return answer;
  const json: unknown = await answer.json().catch(() => undefined);
  throw new Error(Refused.safeParse(json).data?.detail ?? `${origin} answered ${answer.status}`);
}
