import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type { Pool, QueryResult, QueryResultRow } from 'pg';

/**
 * The tables whose rows about an order are packed together: those of the function `take_past_orders`. They are keys in
 * packed JSON, so none is ever renamed.
 */
export const PACKED = [
  'placements',
  'orders',
  'placement_attempts',
  'provider_orders',
  'status_events',
  'live_messages',
  'cancellations',
] as const;

/**
 * What zstd assumes to be known already: the text of a typical order. With it, an order with five webhooks takes 580
 * bytes instead of 1,110. All stored rows depend on each byte of it, so it never changes, whatever columns the tables get.
 */
const DICTIONARY = Buffer.from(
  `
{ "live_messages" : [{"service_order_id":"4711","sequence":2,"rank":10,"applied_at":"2027-01-31T18:00:00.0+00:00",
"published_at":"2027-01-31T18:00:00.0+00:00","provider_order_id":"a1"}, {"service_order_id":"4711","sequence":6,
"rank":60,"applied_at":"2027-01-31T18:00:00.0+00:00","published_at":"2027-01-31T18:00:00.0+00:00",
"provider_order_id":"a1"}], "provider_orders" : [{"location_id":"club-1","integration":"club",
"provider_order_id":"a1","service_order_id":"4711","created_at":"2027-01-31T18:00:00.0+00:00"}],
 "orders" : [{"service_order_id":"4711","location_id":"club-1","integration":"club","fulfillment":"pickup",
"rank":60,"sequence":6,"failed_by_us":false,"provider_order_id":"a1","created_at":"2027-01-31T18:00:00.0+00:00",
"updated_at":"2027-01-31T18:00:00.0+00:00","ended_at":"2027-01-31T18:00:00.0+00:00",
"erased_at":"2027-01-31T18:00:00.0+00:00","call_out_code":"X343"}], "placements" : [{"service_order_id":"4711",
"location_id":"club-1","state":"sent","signalled_at":"2027-01-31T18:00:00.0+00:00",
"deadline_at":"2027-01-31T18:00:00.0+00:00","next_attempt_at":"2027-01-31T18:00:00.0+00:00","attempts":1,
"failures":0,"requested_at":"2027-01-31T18:00:00.0+00:00","request_ended_at":"2027-01-31T18:00:00.0+00:00",
"provider_order_id":"a1","finished_at":"2027-01-31T18:00:00.0+00:00","pos_account":"0f","last_notified_sequence":0,
"polls":0,"missed":0}], "placement_attempts" : [{"service_order_id":"4711","attempt":1,"call":"createOrder",
"started_at":"2027-01-31T18:00:00.0+00:00","ended_at":"2027-01-31T18:00:00.0+00:00","outcome":"placed",
"milliseconds":3}], "status_events" : [{"service_order_id":"4711","event_id":36,"webhook_id":"01a2-7",
"status":"received","native_status":"RECEIVED","outcome":"applied","conflict":false,"sequence":3,
"recorded_at":"2027-01-31T18:00:00.0+00:00"}, {"service_order_id":"4711","event_id":39,"webhook_id":"01a2-7",
"status":"completed","native_status":"COMPLETED","outcome":"applied","conflict":false,"sequence":6,
"recorded_at":"2027-01-31T18:00:00.0+00:00"}] }
`.replaceAll('\n', ''),
);

/** With this dictionary, level 6 takes 60 µs and 580 bytes an order; level 3, the default, 150 µs and 630 bytes. */
const LEVEL = 6;

/**
 * Packs an order in 60 µs. In the thread pool it would take 2 ms of processor time, to set up zstd for each call.
 * @param rows JSON: the rows of each table of `PACKED`, by the table's name
 */
export function packOrder(rows: string): Buffer {
  // A missing column is read as NULL. A quote within a text would be escaped.
  const filled = rows.replaceAll(/,"[a-z_]+":null/g, '');
  return zstdCompressSync(filled, { dictionary: DICTIONARY, params: { [constants.ZSTD_c_compressionLevel]: LEVEL } });
}

export function unpackOrder(packed: Buffer): string {
  return zstdDecompressSync(packed, { dictionary: DICTIONARY }).toString();
}

/** Runs a statement on the tables' rows, or on the rows of past orders. */
export type Reader = {
  query<Row extends QueryResultRow>(text: string, values?: unknown[]): Promise<Pick<QueryResult<Row>, 'rows'>>;
};

/**
 * Makes a reader for which the tables of `PACKED` have the rows of these past orders and no others. So a statement that
 * reads an order also reads a past order.
 */
export function readerOf(pool: Pool, packed: readonly Buffer[]): Reader {
  return readerOfRows(pool, packed.map(unpackOrder));
}

/** @param rows the JSON of each order */
export function readerOfRows(pool: Pool, rows: readonly string[]): Reader {
  const orders = `[${rows.join(',')}]`;
  return {
    query<Row extends QueryResultRow>(text: string, values: unknown[] = []) {
      const tables = PACKED.map(
        (table) => `${table} AS MATERIALIZED (
          SELECT r.* FROM json_array_elements($${values.length + 1}::json) AS o (tables),
                          json_populate_recordset(NULL::${table}, tables -> '${table}') AS r)`,
      );
      return pool.query<Row>(`WITH ${tables.join(', ')} SELECT * FROM (${text}) AS read`, [...values, orders]);
    },
  };
}
