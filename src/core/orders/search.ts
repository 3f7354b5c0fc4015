import type { Pool } from 'pg';
import { z } from 'zod';
import { MOST_FOUND } from '../domain/most-found.ts';
import { jsonObject } from '../postgres/sql-rows.ts';
import { ListedWebhook } from '../replay/list-webhooks.ts';
import { findWebhook } from '../replay/stored-webhook.ts';
import { readerOf, type Reader } from '../retention/pack-order.ts';
import { withStep, type Ranked } from './list-orders.ts';
import { BOARD_FIELDS, BoardOrder, ORDERED_OF } from './read-board.ts';
import { NotDone } from '../operators/not-done.ts';
import { KEYS, MEMBER_PHONE, PHONE_DIGITS, wordsOf } from './member-keys.ts';

export const FoundOrders = z.object({ orders: z.array(BoardOrder) });
export type FoundOrders = z.infer<typeof FoundOrders>;
export const Found = FoundOrders.extend({
  locations: z.array(z.object({ locationId: z.string(), name: z.string().nullable() })),
  webhooks: z.array(ListedWebhook.pick({ webhookId: true, locationId: true, receivedAt: true, outcome: true })),
});
export type Found = z.infer<typeof Found>;

/** Locations that the answer may cover; undefined for all. */
type Within = readonly string[] | undefined;

const IS_WITHIN = '($2::text[] IS NULL OR location_id = ANY ($2))';

/** Finds orders by code, id and POS id, locations by the beginning of the id or a part of the name, and a webhook by id. */
export async function search(pool: Pool, text: string, within: Within): Promise<Found> {
  const { orders } = await findOrders(
    pool,
    `(SELECT service_order_id FROM orders WHERE call_out_code COLLATE "C" = upper($1) AND ${IS_WITHIN}
      ORDER BY created_at DESC LIMIT ${MOST_FOUND})
     UNION SELECT $1
     UNION (SELECT service_order_id FROM provider_orders WHERE provider_order_id = $1 AND ${IS_WITHIN}
            ORDER BY created_at DESC LIMIT ${MOST_FOUND})`,
    [text, within ?? null],
  );
  const { rows: past } = await pool.query<{ id: string; packed: Buffer }>(
    `SELECT service_order_id AS id, packed FROM past_orders
     WHERE (service_order_id = $1 OR provider_order_id = $1) AND ${IS_WITHIN} ORDER BY signalled_at DESC LIMIT ${MOST_FOUND}`,
    [text, within ?? null],
  );
  if (past.length > 0) {
    const reader = readerOf(
      pool,
      past.map(({ packed }) => packed),
    );
    const { orders: older } = await findOrders(reader, 'SELECT unnest($1::text[])', [past.map(({ id }) => id), null]);
    // An order that moved between the two reads is in both.
    const isNew = (order: FoundOrders['orders'][number]): boolean =>
      orders.every((each) => each.serviceOrderId !== order.serviceOrderId);
    orders.push(...older.filter(isNew).slice(0, MOST_FOUND - orders.length));
  }
  const { rows: locations } = await pool.query<Found['locations'][number]>(
    `SELECT location_id AS "locationId", name FROM locations
     WHERE ${IS_WITHIN} AND (starts_with(lower(location_id), lower($1)) OR position(lower($1) IN lower(name)) > 0)
     ORDER BY location_id LIMIT ${MOST_FOUND}`,
    [text, within ?? null],
  );
  return { orders, locations, webhooks: await findWebhooks(pool, text, within) };
}

async function findWebhooks(pool: Pool, text: string, within: Within): Promise<Found['webhooks']> {
  const key = await findWebhook(pool, text);
  if (key === undefined || within?.includes(key.locationId) === false) return [];
  const { rows } = await pool.query<Found['webhooks'][number]>(
    `SELECT id AS "webhookId", location_id AS "locationId", received_at AS "receivedAt", outcome
     FROM webhooks WHERE day = $1 AND location_id = $2 AND id = $3`,
    [key.day, key.locationId, key.webhookId],
  );
  return rows;
}

/**
 * Finds a member's stored orders by the member's id, words of the name, telephone number or e-mail address. Digits after a
 * name are the last ones of the number, as people say them: `Lovelace, 56 78`.
 */
export async function searchMember(pool: Pool, text: string, within: Within): Promise<FoundOrders> {
  const words = text.split(/[\s,]+/);
  const nameEnds = words.findLastIndex((word) => /\D/.test(word)) + 1;
  const name = words.slice(0, nameEnds).join(' ').replace(TITLE, '');
  const named = await idsOfName(pool, name, words.slice(nameEnds).join(''));
  const number = numberOf(text);
  const found = await findMember(pool, text, within, { named, number });
  // A prefix for calls within a country may be part of the number, such as 8 in Kazakhstan.
  const end = number?.slice(-LAST_DIGITS);
  if (found.orders.length > 0 || end === number || number?.startsWith('+') === true) return found;
  return findMember(pool, text, within, { named, number: end });
}

/** What people say before a family name. */
const TITLE = /^(mrs?|ms|miss|dr|prof|herr|frau|mme|mlle|monsieur|madame|sra?|señora?)[.\s]+(?=\S)/i;

/** Digits by which a number is found if it is written in another way than it is stored. */
const LAST_DIGITS = 8;

/**
 * The number as it is stored, in E.164, if the text has the code of its country; else its digits without what is dialled
 * before them. Undefined if the text is no telephone number.
 */
function numberOf(text: string): string | undefined {
  if (!/^\+?[\d\s()./-]+$/.test(text)) return undefined;
  const digits = text.replace('(0)', '').replaceAll(/\D/g, '');
  const number = digits.replace(/^0+/, '');
  if (number.length < PHONE_DIGITS) return undefined;
  return text.startsWith('+') || digits.startsWith('00') ? `+${number}` : number;
}

/** Most orders of one name that are read. */
const READ_OF_NAME = 10_000;

/** Finds orders by words of a name. @param end the last digits of the number @throws NotDone if too many have this name */
async function idsOfName(pool: Pool, name: string, end: string): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(
    `SELECT service_order_id AS id FROM order_contents
     WHERE ${KEYS} @> ${wordsOf('$1')} AND ${wordsOf('$1')} <> '{}' AND ($2::text = '' OR right(${MEMBER_PHONE}, length($2)) = $2)
     LIMIT ${READ_OF_NAME + 1}`,
    [name, end],
  );
  if (rows.length > READ_OF_NAME) throw new NotDone(400, MANY_OF_NAME);
  return rows.map(({ id }) => id);
}

const MANY_OF_NAME =
  'Too many orders have this name. Search by the first name and the family name, or add the last digits of the telephone number.';

type Member = { named: readonly string[]; number: string | undefined };

async function findMember(
  pool: Pool,
  text: string,
  within: Within,
  { named, number = '' }: Member,
): Promise<FoundOrders> {
  return findOrders(
    pool,
    `SELECT service_order_id FROM order_contents WHERE (contents #>> '{member,id}') COLLATE "C" = $1
     UNION SELECT service_order_id FROM order_contents
     WHERE ${KEYS} @> ARRAY[left(lower($1 COLLATE "C"), 200)]
     UNION SELECT service_order_id FROM order_contents
     WHERE ${KEYS} @> ARRAY[right($3::text, ${PHONE_DIGITS})] AND right(${MEMBER_PHONE}, length($3)) = $3
     UNION SELECT unnest($4::text[])`,
    [text, within ?? null, number, named],
  );
}

/** Reads the newest orders. @param ids SQL of their ids. Its parameter `$2` has the locations */
async function findOrders(pool: Reader, ids: string, values: unknown[]): Promise<FoundOrders> {
  const { rows } = await pool.query<{ order: Ranked<BoardOrder> }>(
    `SELECT ${jsonObject(BOARD_FIELDS)} AS "order"
     FROM (SELECT p.* FROM (${ids}) AS found (id)
           CROSS JOIN LATERAL (SELECT * FROM placements WHERE service_order_id = found.id AND ${IS_WITHIN} OFFSET 0) AS p
           ORDER BY p.signalled_at DESC, found.id LIMIT ${MOST_FOUND}) AS p
     LEFT JOIN LATERAL (SELECT * FROM orders WHERE service_order_id = p.service_order_id OFFSET 0) AS o ON true
     ${ORDERED_OF('p.service_order_id')}
     ORDER BY p.signalled_at DESC, p.service_order_id`,
    values,
  );
  return { orders: rows.map(({ order }) => withStep(order)) };
}
