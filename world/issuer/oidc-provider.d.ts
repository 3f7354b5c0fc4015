/** What the tests ask of the package, which has no types. */
declare module 'oidc-provider' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  type Context = { body: unknown; oidc: { client: { clientId: string }; session: { accountId: string } } };
  type Grant = { addOIDCScope(scope: string): void; save(): Promise<string> };

  export class Provider {
    constructor(
      issuer: string,
      configuration: {
        interactions: { url(context: Context, interaction: { uid: string }): string };
        findAccount(context: Context, sub: string): { accountId: string; claims(): object };
        loadExistingGrant(context: Context): Promise<Grant>;
        renderError(context: Context, out: object): void;
        [other: string]: unknown;
      },
    );
    Grant: new (of: { clientId: string; accountId: string }) => Grant;
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
  }
}
