import { TEST_ORDER } from '../core/domain/test-order-id.ts';
import { jsonIn } from '../core/domain/json-text.ts';
import { NotAuthentic } from '../core/domain/errors.ts';
import { explainDrop } from '../core/domain/explain-webhook.ts';
import type { Webhook } from '../core/domain/provider.ts';
import { inOneLine } from '../core/domain/remedy.ts';
import { webhookPath } from '../core/domain/paths.ts';
import { hideSecrets, secretsOf } from '../core/locations/hide-secrets.ts';
import type { Location } from '../core/locations/locations.ts';
import type { StoredWebhook } from '../core/replay/stored-webhook.ts';
import { describeBody } from './send-test-order.ts';
import { failed, type Check } from './check.ts';
import { pageFor } from './test-run.ts';

/** Maximum characters shown of a webhook's body. */
const SHOWN = 500;

/** Explains why a webhook changed nothing, and how to fix it. */
export function explainInVain(check: string, expected: string, webhook: StoredWebhook, location: Location): Check {
  const { found, toDo } = explain(webhook, location);
  return failed(check, found, toDo, { request: `the last webhook: ${describeWebhook(webhook, location)}`, expected });
}

/** Describes a webhook without secrets. The body is shown only if it names a test order: another may be a member's. */
export function describeWebhook({ integration, locationId, body }: StoredWebhook, at: Location): string {
  const text = hideSecrets(body.toString(), secretsOf(at.provider, at.settings));
  const shown = TEST_ORDER.test(text) ? text.slice(0, SHOWN) : describeBody(text).line;
  return `POST ${webhookPath({ integration, locationId })}, with ${shown}`;
}

function explain(webhook: StoredWebhook, location: Location): { found: string; toDo: string } {
  const { outcome } = webhook;
  if (outcome === 'ignored') {
    return {
      found: 'a webhook about the order was ignored, because its status or kind of event is unknown',
      toDo: suggestFix(webhook, location) ?? `use the statuses of ${pageFor(location, 'statuses')}`,
    };
  }
  if (outcome === 'parked') {
    return {
      found: 'a webhook named a ticket only by an id that no answer to an order contained',
      toDo: "answer an order with the ticket's id, also when it is sent again, or name our id in each webhook",
    };
  }
  if (outcome === 'unmatched') {
    return {
      found: "a webhook named the order by an id that is not the order's id",
      toDo: 'name our id exactly as it came with the order, or the id in your answer to the order',
    };
  }
  return { found: `a webhook about the order was dropped: ${webhook.reason}`, toDo: fixFor(webhook, location) };
}

function fixFor(webhook: StoredWebhook, location: Location): string {
  const code = webhook.cause?.code;
  const page = pageFor(location, 'the-signature');
  if (code === 'signature_missing' || code === 'signature_too_old' || code === 'signature_ahead') {
    return `${inOneLine(explainDrop(webhook, webhook).toDo)}: ${page}`;
  }
  if (code !== 'signature_wrong') return suggestFix(webhook, location) ?? `see ${pageFor(location, 'statuses')}`;
  if (isSignedReformatted(webhook, location)) {
    return 'sign exactly the bytes that you send: the signature is right for the same JSON in another format';
  }
  if (isSignedByText(webhook, location)) {
    return 'decode the secret before you sign: the key is the decoded base64, not its letters';
  }
  return (
    suggestFix(webhook, location) ??
    `sign id, time and body in this order, joined by dots, with the secret of the settings: ${page}`
  );
}

function suggestFix(webhook: StoredWebhook, { provider, settings }: Location): string | undefined {
  return provider.builtForUs?.suggestFix(asItCame(webhook), settings);
}

/** How common libraries format JSON: without spaces, with spaces in one line, with line breaks. */
const WRITTEN: readonly ((json: unknown) => string)[] = [
  (json) => JSON.stringify(json),
  (json) =>
    JSON.stringify(json, undefined, 1)
      .replaceAll(/\n */g, ' ')
      .replaceAll(/([{[]) | ([}\]])/g, '$1$2'),
  (json) => JSON.stringify(json, undefined, 2),
];

/** Whether the signature fits another format of the same JSON, but not these bytes. */
function isSignedReformatted(webhook: StoredWebhook, location: Location): boolean {
  const json = jsonIn(webhook.body.toString());
  if (json === undefined) return false;
  return WRITTEN.some((write) => verifies(webhook, location, { body: Buffer.from(write(json)) }));
}

/** Whether the POS signed with the secret's base64 text instead of the bytes that the text encodes. */
function isSignedByText(webhook: StoredWebhook, location: Location): boolean {
  const names = location.provider.webhookAuth?.settings ?? [];
  const settings = location.settings as Record<string, unknown>;
  return names.some((name) => {
    const secret = settings[name];
    if (typeof secret !== 'string') return false;
    const texts = [secret, secret.replace(/^[a-z]+_/, '')];
    return texts.some((text) => {
      const changed = { ...settings, [name]: Buffer.from(text).toString('base64') };
      return verifies(webhook, location, { settings: changed });
    });
  });
}

/** Whether the provider would accept the webhook with another body or settings. */
function verifies(
  webhook: StoredWebhook,
  { provider, settings }: Location,
  otherwise: { body?: Buffer; settings?: unknown },
): boolean {
  const came = asItCame(webhook);
  try {
    provider.translateWebhook({ ...came, body: otherwise.body ?? came.body }, otherwise.settings ?? settings);
    return true;
  } catch (error) {
    return !(error instanceof NotAuthentic);
  }
}

function asItCame({ headers, secrets, body, firstReceivedAt }: StoredWebhook): Webhook {
  return {
    headers: { ...headers, ...secrets?.headers },
    body,
    url: '',
    receivedAt: firstReceivedAt,
    verified: false,
  };
}
