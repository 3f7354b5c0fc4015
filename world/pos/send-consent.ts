import type { ServerResponse } from 'node:http';

/** Sends a vendor's page on which a signed-in owner agrees or does not. Both lead to the application's redirect URL. */
export function sendConsent(
  response: ServerResponse,
  { vendor, redirectUrl, state, code }: { vendor: string; redirectUrl: string; state: string | null; code: string },
): void {
  const link = (words: string, query: Record<string, string>): string => {
    const url = new URL(redirectUrl);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return `<p><a href="${url.href.replaceAll('&', '&amp;')}">${words}</a></p>`;
  };
  const given = state === null ? {} : { state };
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(
    `<!doctype html><html lang="en"><title>${vendor}</title><main><h1>${vendor}</h1>
${link('Allow', { code, ...given })}${link('Deny', { error: 'access_denied', ...given })}</main></html>`,
  );
}
