import type { OutgoingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { secureHeaders } from '../console/page-files.ts';

/** What a page says. All texts are escaped. */
export type Page = {
  title: string;
  text: readonly string[];
  facts?: Readonly<Record<string, string>>;
  action?: { words: string; href: string };
  /** Texts with buttons. A button sends the item's field and its own field to the URL of the page. */
  items?: readonly Item[];
  language?: string;
  style?: string;
};
export type Item = {
  text: readonly string[];
  name: string;
  value: string;
  buttonName: string;
  buttons: readonly { value: string; words: string }[];
};

/** A page for a restaurant: no script, and the style sheet is a file, as the content security policy demands. */
function writePage({ title, text, facts = {}, action, items = [], ...about }: Page): string {
  const rows = Object.entries(facts).map(([name, value]) => `<dt>${escape(name)}</dt><dd>${escape(value)}</dd>`);
  return `<!doctype html>
<html lang="${about.language ?? 'en'}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)}</title>
<link rel="stylesheet" href="${about.style ?? '/connect/page.css'}">
</head>
<body>
<main>
<h1>${escape(title)}</h1>
${rows.length > 0 ? `<dl>${rows.join('')}</dl>` : ''}
${text.map((each) => `<p>${escape(each)}</p>`).join('\n')}
${items.map(writeItem).join('\n')}
${action === undefined ? '' : `<p><a class="button" href="${escape(action.href)}">${escape(action.words)}</a></p>`}
</main>
</body>
</html>
`;
}

function writeItem({ text, name, value, buttonName, buttons }: Item): string {
  const choices = buttons.map(
    (each) =>
      `<button class="button" name="${buttonName}" value="${escape(each.value)}">${escape(each.words)}</button>`,
  );
  const form =
    choices.length === 0
      ? ''
      : `<form method="post"><input type="hidden" name="${name}" value="${escape(value)}">${choices.join(' ')}</form>`;
  return `<section>${text.map((each) => `<p>${escape(each)}</p>`).join('')}${form}</section>`;
}

const ENTITIES = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&#39;'],
]);

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES.get(character) ?? '');
}

const STYLE = `:root { color-scheme: light dark; font: 1.0625rem/1.5 system-ui, sans-serif; }
body { margin: 0; }
main { max-width: 34rem; margin: 0 auto; padding: 2rem 1.25rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; }
dt { font-weight: 600; }
dd { margin: 0 0 0.75rem; }
section { margin-bottom: 2rem; }
.button { display: inline-block; border: 0; font: inherit; margin: 0 0.5rem 0.5rem 0; padding: 0.75rem 1.5rem; border-radius: 0.5rem; font-weight: 600; text-decoration: none;
  background: #0b57d0; color: #fff; }
.button:focus-visible { outline: 3px solid currentColor; outline-offset: 3px; }
`;

/** Headers of a page that may send its forms to us. */
const FORM_HEADERS = {
  ...secureHeaders,
  'content-security-policy': secureHeaders['content-security-policy']?.replace(
    "form-action 'none'",
    "form-action 'self'",
  ),
  'cache-control': 'no-store',
  'x-robots-tag': 'noindex',
};

const BODY_LIMIT = 1_024;

/** Makes a scope serve pages: with these headers, with their style sheet, and with no bodies but forms. */
export function servePages(scope: FastifyInstance, headers: OutgoingHttpHeaders = {}): void {
  scope.addHook('onRequest', async (_request, reply) => void reply.headers({ ...FORM_HEADERS, ...headers }));
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: BODY_LIMIT },
    (_request, body, done) => done(null, new URLSearchParams(String(body))),
  );
  scope.get('/page.css', async (_request, reply) =>
    reply.header('cache-control', 'max-age=3600').type('text/css; charset=utf-8').send(STYLE),
  );
}

export function sendPage(reply: FastifyReply, status: number, page: Page): FastifyReply {
  return reply.code(status).type('text/html; charset=utf-8').send(writePage(page));
}
