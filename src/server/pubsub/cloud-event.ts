import { traceId } from '../../core/domain/trace-id.ts';
import type { LiveMessage } from '../../core/domain/live-message.ts';

/** What is told. Its version is that of the payload, which docs/decisions/19-cloudevents.md lets change. */
export const EVENT_TYPE = 'expediter.order.status-changed.v1';
/** The `$id` of docs/live-message.schema.json: a name, and no address. */
export const DATA_SCHEMA = 'urn:expediter:live-message:v1';
/** As many as the largest sequence has, which is that of an integer of Postgres. */
const DIGITS = 10;
/** What no text of a CloudEvent may hold. An order's id may. */
const NO_TEXT = /[\p{Cc}\p{Noncharacter_Code_Point}]/u;

/**
 * Makes the attributes of a CloudEvent in the binary mode of its binding for Pub/Sub, a working draft
 * (https://github.com/googleapis/google-cloudevents/blob/main/docs/spec/pubsub.md). An order's id has 255 characters of
 * three bytes at most, so `ce-id` is below the 1,024 bytes that Pub/Sub takes of a value.
 *
 * `content-type` is where the binding's text has the media type, `ce-datacontenttype` where its examples have it and
 * CloudEvents' own library for Go looks. There is no `ce-sequencetype`: after a restore, numbers are left out.
 * @param about.source who tells it, a URI reference
 * @param about.traceparent the span of the publishing; undefined if nothing is traced
 */
export function cloudEvent(
  { serviceOrderId, sequence, appliedAt }: LiveMessage,
  { source, traceparent }: { source: string; traceparent: string | undefined },
): Record<string, string> {
  const isText = !NO_TEXT.test(serviceOrderId);
  return {
    'content-type': 'application/json',
    'ce-specversion': '1.0',
    'ce-id': `${isText ? serviceOrderId : traceId(serviceOrderId)}/${sequence}`,
    'ce-source': source,
    'ce-type': EVENT_TYPE,
    ...(isText && { 'ce-subject': serviceOrderId }),
    'ce-time': appliedAt,
    'ce-datacontenttype': 'application/json',
    'ce-dataschema': DATA_SCHEMA,
    'ce-sequence': String(sequence).padStart(DIGITS, '0'),
    ...(traceparent !== undefined && { 'ce-traceparent': traceparent }),
  };
}
