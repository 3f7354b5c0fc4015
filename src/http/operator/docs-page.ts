import { hash } from 'node:crypto';

/** The parts of an OpenAPI 3.1 document that the page shows. */
export type ApiDocument = {
  info: { title: string; version: string; description?: string };
  tags?: { name: string; description?: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas?: Record<string, Schema> };
};
type Operation = {
  operationId?: string;
  tags?: string[];
  summary?: string;
  description?: string;
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema?: Schema }[];
  requestBody?: { content: Record<string, Media> };
  responses?: Record<string, { description: string; content?: Record<string, Media> }>;
};
type Media = { schema?: Schema; example?: unknown };
type Schema = {
  $ref?: string;
  type?: string | string[];
  format?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  description?: string;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  examples?: unknown[];
  example?: unknown;
};

const STYLE = `
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}
code,pre{font:14px/1.45 ui-monospace,monospace;background:#f4f4f2;border-radius:3px}
code{padding:.1em .3em}pre{padding:.75rem;overflow:auto}
h2{margin-top:3rem;border-bottom:1px solid #ccc}h3{margin-top:2rem}
table{border-collapse:collapse}td,th{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0}
ul{padding-left:1.25rem}summary{cursor:pointer}
@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#161616}code,pre{background:#262626}a{color:#8ab4f8}}`;

/** Renders the document as one page without scripts or other resources. */
export function docsPage(api: ApiDocument): { html: string; contentSecurityPolicy: string } {
  const operations = Object.entries(api.paths).flatMap(([path, byMethod]) =>
    Object.entries(byMethod).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const parts = (api.tags ?? []).map(
    (tag) => `<h2 id="${text(tag.name)}">${text(tag.name)}</h2>
<p>${words(tag.description)}</p>
${operations
  .filter(({ operation }) => operation.tags?.includes(tag.name))
  .map(renderOperation)
  .join('\n')}`,
  );
  const schemas = Object.entries(api.components.schemas ?? {}).map(
    ([name, schema]) =>
      `<h3 id="schema-${text(name)}">${text(name)}</h3>\n${renderSchema(schema)}${renderExample(schema)}`,
  );
  const html = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${text(api.info.title)}</title>
<style>${STYLE}</style>
<h1>${text(api.info.title)} <small>${text(api.info.version)}</small></h1>
<p>${words(api.info.description)} As OpenAPI 3.1: <a href="/openapi.json">/openapi.json</a></p>
<ul>
${operations.map(({ path, method, operation }) => `<li><a href="#${text(operation.operationId)}"><code>${method} ${text(path)}</code></a> ${words(operation.summary)}`).join('\n')}
</ul>
${parts.join('\n')}
<h2>Shapes</h2>
${schemas.join('\n')}
</html>
`;
  const style = hash('sha256', STYLE, 'base64');
  return {
    html,
    contentSecurityPolicy: `default-src 'none'; style-src 'sha256-${style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  };
}

function renderOperation({ path, method, operation }: { path: string; method: string; operation: Operation }): string {
  const parameters = (operation.parameters ?? []).map(
    ({ name, in: where, required, description, schema = {} }) =>
      `<tr><td><code>${text(name)}</code><td>${text(where)}${required ? ', required' : ''}<td>${kindOf(schema)} ${words(description)}`,
  );
  const body = Object.values(operation.requestBody?.content ?? {}).map(
    ({ schema, example }) =>
      `<p>Body, as JSON:</p>${schema === undefined ? '' : renderSchema(schema)}${renderExample({ example, ...schema })}`,
  );
  const answers = Object.entries(operation.responses ?? {}).map(
    ([status, { description, content = {} }]) =>
      `<tr><td><code>${text(status)}</code><td>${words(description)} ${Object.entries(content)
        .map(([type, { schema }]) => renderAnswer(type, schema))
        .join('')}`,
  );
  return `<h3 id="${text(operation.operationId)}"><code>${method} ${text(path)}</code></h3>
<p><strong>${words(operation.summary)}</strong></p>
<p>${words(operation.description)}</p>
${parameters.length === 0 ? '' : `<table>\n${parameters.join('\n')}\n</table>`}
${body.join('\n')}
<table>
${answers.join('\n')}
</table>`;
}

function renderAnswer(type: string, schema: Schema | undefined): string {
  if (type !== 'application/json' || schema === undefined) return `<code>${text(type)}</code>`;
  if (schema.$ref !== undefined) return kindOf(schema);
  return `<details><summary>its shape</summary>${renderSchema(schema)}</details>`;
}

function renderSchema(schema: Schema): string {
  const variants = schema.anyOf ?? schema.oneOf;
  if (variants?.some((variant) => variant.properties !== undefined)) {
    return variants.map((variant) => renderSchema(variant)).join('<p>or</p>');
  }
  const inner = schema.items ?? schema;
  if (inner.properties === undefined) return `<p>${kindOf(schema)} ${words(schema.description)}</p>`;
  const fields = Object.entries(inner.properties).map(([name, field]) => {
    const optional = inner.required?.includes(name) === true ? '' : ' <em>optional</em>';
    const nested = [field, field.items, ...(field.anyOf ?? [])].find((each) => each?.properties !== undefined);
    const about = `<code>${text(name)}</code>${optional} ${kindOf(field)} ${words(field.description)}`;
    return `<li>${about}${nested === undefined ? '' : renderSchema(nested)}`;
  });
  return `<ul>\n${fields.join('\n')}\n</ul>`;
}

function kindOf(schema: Schema): string {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? '';
    return `<a href="#schema-${text(name)}">${text(name)}</a>`;
  }
  const variants = schema.anyOf ?? schema.oneOf;
  if (variants !== undefined) return variants.map(kindOf).join(' or ');
  if (schema.items !== undefined) return `list of ${kindOf(schema.items)}`;
  const values = schema.const === undefined ? schema.enum : [schema.const];
  const kind =
    values === undefined ? text([schema.type ?? 'anything'].flat().join(' or ')) : values.map(literal).join(' | ');
  const format = schema.format === undefined ? '' : ` (${text(schema.format)})`;
  const otherwise = schema.default === undefined ? '' : `, ${literal(schema.default)} unless given`;
  return `${kind}${format}${otherwise}`;
}

function renderExample({ example, examples = example === undefined ? [] : [example] }: Schema): string {
  return examples.map((each) => `<pre>${text(JSON.stringify(each, null, 2))}</pre>`).join('\n');
}

function literal(value: unknown): string {
  return `<code>${text(JSON.stringify(value))}</code>`;
}

/** Renders text, with code between backticks. */
function words(sentence: string | undefined): string {
  return text(sentence).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
}

function text(plain: string | undefined): string {
  return (plain ?? '').replaceAll(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}
