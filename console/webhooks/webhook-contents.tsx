import { useEffect, useMemo, useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { CopyButton } from '../parts/copyable.tsx';
import { Loading } from '../parts/loading.tsx';
import { useLoaded } from '../parts/use-loaded.ts';
import type { ShownWebhook } from '../wire.ts';
import { prettyJson } from './pretty-json.ts';

type AboutContents = { webhookId: string; onLoaded: (shown: ShownWebhook) => void };

/** Headers and body as received. @param onLoaded gets the whole webhook, with the reasons of its events */
export function WebhookContents({ webhookId, onLoaded }: AboutContents) {
  const found = useLoaded((signal) => ask<ShownWebhook>('GET', `/webhooks/${webhookId}`, { signal }), [webhookId]);
  useEffect(() => {
    if (found.value !== undefined) onLoaded(found.value);
  }, [found.value]);
  return (
    <Loading loaded={found}>
      {({ headers = {}, body }) => (
        <>
          {body !== undefined && <Body body={body} />}
          <Headers headers={headers} />
        </>
      )}
    </Loading>
  );
}

function Headers({ headers }: { headers: Record<string, string> }) {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return (
    <section aria-labelledby="webhook-headers">
      <div class="apart webhooks-heading">
        <h3 id="webhook-headers">Headers</h3>
        <CopyButton text={lines.join('\n')} label="the headers" />
      </div>
      {lines.length === 0 ? (
        <p class="faint">No headers are stored.</p>
      ) : (
        <dl class="webhooks-headers mono">
          {Object.entries(headers).flatMap(([name, value]) => [
            <dt key={`${name}:`}>{name}</dt>,
            <dd key={name}>{value}</dd>,
          ])}
        </dl>
      )}
    </section>
  );
}

/** Characters that a page can show without blocking. */
const SHOWN = 500_000;

function Body({ body }: { body: NonNullable<ShownWebhook['body']> }) {
  const [isRaw, setRaw] = useState(false);
  const { text, base64 } = body;
  const received = text ?? base64;
  const isLarge = received.length > SHOWN;
  const pretty = useMemo(() => (text === undefined || isLarge ? undefined : prettyJson(text)), [text, isLarge]);
  const shown = isRaw || pretty === undefined ? received : pretty;
  return (
    <section aria-labelledby="webhook-body">
      <div class="apart webhooks-heading">
        <h3 id="webhook-body">Body</h3>
        <span class="buttons">
          {pretty !== undefined && (
            <button type="button" aria-pressed={isRaw} onClick={() => setRaw(!isRaw)}>
              As received
            </button>
          )}
          <CopyButton text={shown} label="the body" />
        </span>
      </div>
      {text === undefined && <p class="faint">It is not text. Shown in base64.</p>}
      {text !== undefined && pretty === undefined && text !== '' && !isLarge && (
        <p class="faint">It is not JSON. Shown as received.</p>
      )}
      {shown.length > SHOWN && <p class="faint">Only the beginning is shown. Copy copies all of it.</p>}
      {shown === '' ? (
        <p class="faint">It is empty.</p>
      ) : (
        // A scrolling element must be reachable by keyboard.
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
        <pre class="webhooks-body" tabIndex={0}>
          {shown.slice(0, SHOWN)}
        </pre>
      )}
    </section>
  );
}
