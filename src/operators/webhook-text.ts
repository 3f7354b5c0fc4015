import { facts, sections, table, tableOf, time, titled, titledTable } from '../terminal/print.ts';
import type { ListedWebhook } from '../core/replay/list-webhooks.ts';
import type { Replayed } from '../core/replay/replay-webhook.ts';
import type { ReplayedMany } from '../core/replay/replay-webhooks.ts';
import type { ShownWebhook } from '../core/replay/show-webhook.ts';

export function webhooksTable(rows: readonly ListedWebhook[]): string {
  return tableOf('No webhooks match.', rows, (row) => ({
    webhook: row.webhookId,
    received: row.receivedAt,
    location: row.locationId,
    integration: row.integration,
    outcome: row.outcome,
    order: row.callOutCode,
    events: row.events,
    bytes: row.truncated ? `${row.bytes}, cut off` : row.bytes,
    'replay of': row.replayOf,
    why: row.reason,
  }));
}

export function replayInWords(replayed: Replayed, { dryRun }: { dryRun: boolean }): string {
  const { webhookId, replayOf, locationId, integration, outcome, reason, events, redriven } = replayed;
  const about = facts({
    'would be': dryRun ? outcome : '',
    outcome: dryRun ? '' : outcome,
    why: reason,
    webhook: webhookId,
    'replay of': replayOf,
    location: locationId,
    integration,
    'also applied': redriven > 0 ? `${redriven} parked events` : '',
  });
  const rows = events.map((event) => ({
    status: event.status,
    order: event.serviceOrderId,
    'POS id': event.providerOrderId,
    outcome: event.conflict ? `${event.outcome}, conflict: a person should check the order` : event.outcome,
  }));
  return sections(about, table(rows));
}

export function replaysInWords({ dryRun, outcomes, replayed, refused }: ReplayedMany): string {
  const counts = Object.entries(outcomes).map(([outcome, count]) => `${count} ${outcome}`);
  if (refused.length > 0) counts.push(`${refused.length} not replayable`);
  const outcomeName = dryRun ? 'would be' : 'outcome';
  const rows = [
    ...replayed.map((each) => ({
      'replay of': each.replayOf,
      webhook: each.webhookId,
      location: each.locationId,
      integration: each.integration,
      [outcomeName]: each.outcome,
      orders: [...new Set(each.events.map((event) => event.serviceOrderId ?? event.providerOrderId))].join(', '),
      conflict: each.events.some((event) => event.conflict) ? 'a person should check the order' : '',
      why: each.reason,
    })),
    ...refused.map((each) => ({
      'replay of': each.webhookId,
      webhook: null,
      location: each.locationId,
      integration: each.integration,
      [outcomeName]: 'not replayable',
      orders: null,
      conflict: null,
      why: each.refused,
    })),
  ];
  if (rows.length === 0) return 'Nothing to replay.';
  return sections(table(rows), `${dryRun ? 'it would be: ' : ''}${counts.join(', ')}`);
}

export function webhookInWords(shown: ShownWebhook): string {
  const { today, replays } = shown;
  const body = toText(shown.body);
  return sections(
    facts({
      webhook: shown.webhookId,
      received: shown.receivedAt,
      location: shown.locationId,
      integration: shown.integration,
      outcome: shown.outcome,
      why: shown.reason,
      events: shown.events,
      'replay of': shown.replayOf,
      'first received': shown.replayOf === null ? '' : shown.firstReceivedAt,
      'a replay today':
        'events' in today
          ? `would read ${describeAvailability(today.pausedUntil) ?? `${today.events.length} events`}`
          : 'dropped' in today
            ? `would be dropped: ${today.dropped}`
            : `is not possible: ${today.refused}`,
      'left out, because unreadable': 'events' in today ? (today.unread ?? []).join(', ') : '',
    }),
    titledTable('Events, as a replay would read them', 'events' in today ? today.events : [], (event) => ({
      status: event.status,
      'at the POS': event.nativeStatus,
      order: event.serviceOrderId,
      'POS id': event.providerOrderId,
      occurred: event.occurredAt,
      reason: event.reason,
    })),
    titledTable('Replays of the same webhook', replays, ({ webhookId, receivedAt, outcome, reason }) => ({
      webhook: webhookId,
      received: receivedAt,
      outcome,
      why: reason,
    })),
    titled('Headers', facts(shown.headers ?? {})),
    body === undefined
      ? `Body, ${shown.bytes} bytes: encrypted, and cannot be decrypted`
      : titled(
          `Body, ${shown.bytes} bytes${shown.truncated ? ', cut off' : ''}${'base64' in body ? ', in base64' : ''}`,
          'text' in body ? body.text.replaceAll('\r\n', '\n') : body.base64,
        ),
  );
}

/** Returns a body as text if it is UTF-8 without terminal control characters. */
function toText(body: ShownWebhook['body']): { text: string } | { base64: string } | undefined {
  if (body === undefined) return undefined;
  const { base64, text } = body;
  return text === undefined || /[^\P{Cc}\t\n\r]/u.test(text) ? { base64 } : { text };
}

function describeAvailability(pausedUntil: Date | null | undefined): string | undefined {
  if (pausedUntil === undefined) return undefined;
  return pausedUntil === null ? 'that the POS takes orders' : `that the POS takes no orders until ${time(pausedUntil)}`;
}
