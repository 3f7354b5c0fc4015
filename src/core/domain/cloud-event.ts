import type { AttentionEvent } from './attention-event.ts';
import type { Availability } from './availability.ts';
import type { LiveMessage } from './live-message.ts';
import { traceId } from './trace-id.ts';

/** A CloudEvent about a subject, which is also its ordering key on a topic. */
export type OurEvent = {
  /** With the version of the payload. docs/decisions/19-cloudevents.md has the rules for changes. */
  type: string;
  /** The `$id` of the payload's JSON Schema. It is a name, and nothing can be fetched there. */
  schema: string;
  subject: string;
  sequence: number;
  /** The digits of the largest sequence. By default those of the milliseconds since 1970, until the year 2286. */
  digits?: number;
  time: string;
  data: object;
  /** A topic's attributes besides those of CloudEvents, by which a subscription filters. */
  attributes: Record<string, string>;
  /** The span of the call that sends it; undefined if tracing is off. */
  traceparent?: string | undefined;
};

/** Sends an event, and resolves when it was taken. The result is the id that a topic gave it. */
export type SendEvent = (event: OurEvent) => Promise<string | undefined>;

/** Characters that the text of a CloudEvent must not contain, but an id may contain. */
const NO_TEXT = /[\p{Cc}\p{Noncharacter_Code_Point}]/u;

/**
 * Makes the context attributes of a CloudEvent, without a prefix. An id has at most 255 characters of three bytes, so the
 * event's `id` is below Pub/Sub's limit of 1,024 bytes for a value. There is no `sequencetype`, because numbers are
 * skipped after a restore.
 * @param source the publisher, a URI reference
 * @see https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md
 */
export function contextOf(event: OurEvent, source: string): Record<string, string> {
  const { subject, sequence, digits = 13, traceparent } = event;
  const isText = !NO_TEXT.test(subject);
  return {
    specversion: '1.0',
    id: `${isText ? subject : traceId(subject)}/${sequence}`,
    source,
    type: event.type,
    ...(isText && { subject }),
    time: event.time,
    datacontenttype: 'application/json',
    dataschema: event.schema,
    sequence: String(sequence).padStart(digits, '0'),
    ...(traceparent !== undefined && { traceparent }),
  };
}

export const STATUS_TYPE = 'expediter.order.status-changed.v1';
/** The `$id` of docs/live-message.schema.json. */
export const STATUS_SCHEMA = 'urn:expediter:live-message:v1';
/** A sequence is a 4-byte integer of Postgres. */
const STATUS_DIGITS = 10;

export function statusEvent(message: LiveMessage, traceparent: string | undefined): OurEvent {
  const { serviceOrderId, locationId, status, memberState, sequence, appliedAt: time } = message;
  return {
    type: STATUS_TYPE,
    schema: STATUS_SCHEMA,
    subject: serviceOrderId,
    sequence,
    digits: STATUS_DIGITS,
    time,
    data: message,
    attributes: {
      type: 'orderStatusChanged',
      serviceOrderId,
      ...(locationId !== undefined && { locationId }),
      ...(status !== null && { status }),
      memberState,
    },
    traceparent,
  };
}

export const KITCHEN_TYPE = 'expediter.kitchen.availability-changed.v1';
/** The `$id` of docs/kitchen-availability.schema.json. */
export const KITCHEN_SCHEMA = 'urn:expediter:kitchen-availability:v1';

export function kitchenEvent(availability: Availability): OurEvent {
  const { locationId, sequence, state } = availability;
  return {
    type: KITCHEN_TYPE,
    schema: KITCHEN_SCHEMA,
    subject: locationId,
    sequence,
    // A repeat has the same time.
    time: new Date(sequence).toISOString(),
    data: availability,
    attributes: { type: 'kitchenAvailabilityChanged', locationId, state },
  };
}

/** The `$id` of docs/attention-event.schema.json. */
export const ATTENTION_SCHEMA = 'urn:expediter:attention-event:v1';

export function attentionCloudEvent(about: AttentionEvent): OurEvent {
  const { event, kind, locationId } = about;
  return {
    type: `expediter.attention.${event}.v1`,
    schema: ATTENTION_SCHEMA,
    subject: about.id,
    sequence: about.sequence,
    time: about.at,
    data: about,
    attributes: { type: 'attention', event, kind, ...(locationId !== null && { locationId }) },
  };
}
