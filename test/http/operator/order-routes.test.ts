import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Provider } from '../../../src/core/domain/provider.ts';
import { eraseBatch } from '../../../src/core/retention/erase-members.ts';
import { seedTrouble } from '../../core/notices/seed-trouble.ts';
import { OPERATOR_TOKEN, askOperator, sendAsIs, type Operator } from '../../../world/system/ask-operator.ts';
import { dropPast, makePast } from '../../support/make-past.ts';
import { startStage, type Stage } from '../../support/operator-stage.ts';
import { sampleOrder } from '../../../world/platform/sample-order.ts';

type Row = { serviceOrderId: string; [field: string]: unknown };

/** A POS that cannot be asked: a person decides about an order in doubt. */
const mute: Provider = {
  integration: 'mute',
  settings: z.object({}),
  deduplicates: false,
  createOrder: async () => ({}),
  translateWebhook: () => [],
};

const BY = { kind: 'operator_token', id: 'operator_token', name: 'OPERATOR_TOKEN' };

let stage: Stage;
let operator: Operator;

beforeAll(async () => {
  stage = await startStage({ providers: [mute] });
  operator = await askOperator(await stage.listen());
  await stage.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  await stage.addLocation('mute-1', {}, 'mute');
});
afterAll(() => stage?.stop());

const listed = async (query: string): Promise<Row[]> => {
  const { status, body } = await operator.get(`/orders?${query}`);
  expect(status).toBe(200);
  return body['orders'] as Row[];
};
const ids = async (query: string): Promise<string[]> => (await listed(query)).map((row) => row.serviceOrderId);
/** An order at `club-1` with its contents. */
const placed = async (type: 'pickup' | 'delivery' = 'pickup'): Promise<ReturnType<typeof sampleOrder>> => {
  const order = sampleOrder({ locationId: 'club-1', type });
  await stage.seedOrder({ serviceOrderId: order.serviceOrderId, locationId: 'club-1', contents: order });
  return order;
};
const audited = async (action: string, about: object): Promise<unknown> => {
  const { body } = await operator.get(`/audit?action=${encodeURIComponent(action)}&limit=200`);
  return expect(body['actions']).toContainEqual(
    expect.objectContaining({ by: BY, source: '127.0.0.1', action, outcome: 'done', ...about }),
  );
};

describe('the list of orders', () => {
  it('has the newest orders first, and can be filtered', async () => {
    const locationId = `list-${randomUUID()}`;
    const orders: string[] = [];
    for (const [i, state] of (['sent', 'sent', 'failed', 'held', 'in_doubt', 'waiting'] as const).entries()) {
      const serviceOrderId = `${locationId}-${i}`;
      orders.unshift(serviceOrderId);
      await stage.seedOrder({ serviceOrderId, locationId, fulfillment: i === 0 ? 'delivery' : 'pickup' });
      await stage.query(
        `UPDATE placements SET state = $2, signalled_at = now() - make_interval(hours => $3),
                finished_at = CASE WHEN $2 IN ('sent', 'failed') THEN now() END,
                next_attempt_at = CASE WHEN $2 IN ('waiting', 'held') THEN now() + interval '1 h' ELSE 'infinity' END
         WHERE service_order_id = $1`,
        [serviceOrderId, state, 6 - i],
      );
    }
    const [waiting, doubted, held, failed, sent, first] = orders as [string, string, string, string, string, string];
    await stage.query(`UPDATE orders SET rank = 80, ended_at = now() WHERE service_order_id = $1`, [sent]);
    await stage.query(`UPDATE orders SET rank = 50 WHERE service_order_id = $1`, [first]);

    const of = (query: string): Promise<string[]> => ids(`location=${locationId}&${query}`);
    expect(await of('')).toEqual(orders);
    expect(await of('state=held')).toEqual([held]);
    expect(await of('state=failed')).toEqual([failed]);
    expect(await of('state=sent')).toEqual([sent, first]);
    expect(await of('needs=operator')).toEqual([doubted, held]);
    expect(await of('open=false')).toEqual([sent]);
    expect(await of('open=true')).toEqual(orders.filter((each) => each !== sent));
    expect(await of('status=cancelled')).toEqual([sent]);
    expect(await of('memberState=out_for_delivery')).toEqual([first]);
    expect(await of('memberState=sent')).toEqual([waiting, doubted, held, failed]);
    expect(await of('integration=hubrise')).toEqual([]);
    const since = encodeURIComponent(new Date(Date.now() - 3.5 * 3_600_000).toISOString());
    expect(await of(`since=${since}`)).toEqual([waiting, doubted, held]);
    expect(await of(`until=${since}`)).toEqual([failed, sent, first]);
    expect(await ids(`location=other-${locationId}`)).toEqual([]);

    const [row] = await listed(`location=${locationId}&needs=operator`);
    expect(row).toMatchObject({ placement: 'in_doubt', needsOperator: true, nextAttemptAt: null, memberState: 'sent' });
  });

  it('can be limited to those that are late as on the board', async () => {
    const locationId = `late-${randomUUID()}`;
    const of = { late: '16 min', soon: '14 min', ready: '16 min', retried: '16 min', held: '16 min', ended: '16 min' };
    for (const [name, ago] of Object.entries(of)) {
      const serviceOrderId = `${locationId}-${name}`;
      await stage.seedOrder({ serviceOrderId, locationId });
      await stage.query(
        `UPDATE orders SET requested_at = now() - $2::interval, rank = CASE WHEN $3 THEN 40 ELSE rank END,
                ended_at = CASE WHEN $4 THEN now() END WHERE service_order_id = $1`,
        [serviceOrderId, ago, name === 'ready', name === 'ended'],
      );
    }
    await stage.query(
      `UPDATE placements SET finished_at = NULL, problem = 'x', next_attempt_at = now() + interval '1 h',
              state = CASE WHEN service_order_id LIKE '%-held' THEN 'held' ELSE 'waiting' END
       WHERE service_order_id = ANY ($1)`,
      [[`${locationId}-retried`, `${locationId}-held`]],
    );
    expect(await ids(`location=${locationId}&memberState=ready_for_pickup`)).toEqual([`${locationId}-ready`]);
    expect(await ids(`location=${locationId}&needs=late`)).toEqual([`${locationId}-late`]);
    // The member was promised another time by the POS.
    const estimate = `UPDATE orders SET estimate[2] = now() WHERE service_order_id = $1`;
    await stage.query(estimate, [`${locationId}-late`]);
    expect(await ids(`location=${locationId}&needs=late`)).toEqual([]);
  });

  it('shows every order once over all pages, even if new orders arrive between two pages', async () => {
    const locationId = `pages-${randomUUID()}`;
    const all = Array.from({ length: 7 }, (_, i) => `${locationId}-${i}`);
    for (const serviceOrderId of all) await stage.seedOrder({ serviceOrderId, locationId });
    // Of the same moment: then the id tells them apart.
    await stage.query('UPDATE placements SET signalled_at = now() WHERE location_id = $1', [locationId]);
    const seen: string[] = [];
    let next: string | null = '';
    while (next !== null) {
      const cursor = next === '' ? '' : `&cursor=${encodeURIComponent(next)}`;
      const { body } = await operator.get(`/orders?location=${locationId}&limit=3${cursor}`);
      seen.push(...(body['orders'] as Row[]).map((row) => row.serviceOrderId));
      next = body['next'] as string | null;
      await stage.seedOrder({ serviceOrderId: `late-${randomUUID()}`, locationId });
    }
    expect(seen).toEqual(all.toReversed());
  });

  it.each([
    ['limit=0', 'limit is below 1'],
    ['limit=201', 'limit is above 200'],
    ['limit=ten', 'limit is a string; a number is required.'],
    ['limit=1.5', 'limit has a fraction; a whole number is required'],
    ['state=lost', 'state must be one of waiting, held, in_doubt'],
    ['since=yesterday', 'since must be a time such as 2027-01-31T18:00:00Z.'],
    ['since=0000-01-01T00:00:00Z', 'since must be a time such as'],
    ['open=maybe', 'open must be true or false.'],
    ['nobody=knows', 'query has no field nobody.'],
    ['open=maybe&limit=0', 'open must be true or false; limit is below 1.'],
  ])('answers 400 and names a wrong filter: %s', async (query, sentence) => {
    const { status, body } = await operator.get(`/orders?${query}`);
    expect(status).toBe(400);
    expect(body).toMatchObject({
      status: 400,
      detail: expect.stringContaining(`The request is not valid: ${sentence}`),
    });
    expect(body).toHaveProperty('issues.0.path', sentence.split(' ')[0]);
  });

  it('answers 400 to an invented cursor', async () => {
    for (const cursor of ['nobody', 'eyJ9', "' OR 1=1 --"]) {
      expect(await operator.get(`/orders?cursor=${encodeURIComponent(cursor)}`)).toMatchObject({
        status: 400,
        body: { detail: expect.stringContaining('cursor') },
      });
    }
  });
});

describe('the answer about an order', () => {
  it('shows its items without member data, and no items after the erasure', async () => {
    const fees = [
      { name: 'Bag', amount: 50 },
      { name: 'Delivery', amount: 300 },
    ];
    const taxes = [{ name: 'VAT', amount: 724, rate: 19 }];
    const order = sampleOrder({ locationId: 'club-1', type: 'delivery', fees, taxes });
    const { serviceOrderId, items, money } = order;
    const dip = { serviceModifierId: 'dip', name: 'Dip', quantity: 2 };
    for (const { modifiers } of items) for (const each of modifiers) each.modifiers = [dip];
    await stage.seedOrder({ serviceOrderId, locationId: 'club-1', contents: order });
    const read = async (): Promise<Record<string, unknown>> =>
      (await operator.get(`/orders/${serviceOrderId}?ordered=true`)).body;
    const body = await read();
    expect(body['ordered']).toEqual({
      items: items.map(({ name, quantity, unitPrice, ageRestricted, modifiers }) => ({
        name,
        quantity,
        unitPrice,
        ageRestricted,
        modifiers: modifiers.map((each) => ({
          name: each.name,
          quantity: each.quantity,
          unitPrice: each.unitPrice ?? null,
          modifiers: [{ name: 'Dip', quantity: 2, unitPrice: null }],
        })),
      })),
      money: { ...money, discount: 0 },
      fees,
      taxes,
    });
    expect(JSON.stringify(body)).not.toMatch(/Lovelace|ada@|\+4930|member-42|Lindenstra|Ring twice|well done|terrace/);

    await stage.query(
      `UPDATE order_contents SET contents = jsonb_set(contents, '{money,discount}', '150') WHERE service_order_id = $1`,
      [serviceOrderId],
    );
    expect((await read())['ordered']).toMatchObject({ money: { discount: 150 } });

    await stage.query('UPDATE orders SET ended_at = now() WHERE service_order_id = $1', [serviceOrderId]);
    await eraseBatch(stage.pool, [serviceOrderId], {});
    expect((await read())['ordered']).toBeNull();
  });

  it('shows its contents with contents=true, and records that in the audit', async () => {
    const order = await placed();
    const { serviceOrderId } = order;
    const { body } = await operator.get(`/orders/${serviceOrderId}?contents=true`);
    expect(body['contents']).toEqual(JSON.parse(JSON.stringify(order)));
    await audited('read contents', { serviceOrderId });
    expect(stage.logged.join('')).not.toMatch(/Lovelace|ada@|\+4930/);
    expect((await operator.get(`/orders/${serviceOrderId}`)).body).not.toHaveProperty('contents');
  });

  it("shows the POS's text only with contents=true, and the reasonCode always", async () => {
    const { serviceOrderId } = await placed();
    await stage.query(
      `WITH o AS (UPDATE orders SET rank = 80, reason = 'Ada is unwell', reason_code = 'other' WHERE service_order_id = $1)
       INSERT INTO status_events (service_order_id, status, native_status, outcome, reason, reason_code)
       VALUES ($1, 'cancelled', 'CANCELLED', 'applied', 'Ada is unwell', 'other')`,
      [serviceOrderId],
    );
    for (const path of [`/orders/${serviceOrderId}`, '/orders?limit=200', `/orders/${serviceOrderId}?ordered=true`]) {
      const { text } = await operator.get(path);
      expect(text, path).toContain('"reasonCode":"other"');
      expect(text, path).not.toContain('Ada is unwell');
    }
    const { body } = await operator.get(`/orders/${serviceOrderId}?contents=true`);
    const told = { reason: 'Ada is unwell', reasonCode: 'other' };
    const details: unknown = expect.objectContaining(told);
    expect(body).toMatchObject({ order: told, history: [told] });
    expect(body['timeline']).toContainEqual(expect.objectContaining({ what: 'status', details }));
  });

  it('shows the paths of changed fields, and their values only with contents=true', async () => {
    const serviceOrderId = `cancelled-${randomUUID()}`;
    await stage.seedOrder({ serviceOrderId, locationId: 'club-1' });
    const path = `/orders/${serviceOrderId}`;
    expect((await operator.get(path)).body).toMatchObject({ cancellation: null, changes: [] });
    await stage.query(
      `WITH o AS (UPDATE orders SET cancellation = 'requested' WHERE service_order_id = $1),
            c AS (INSERT INTO order_changes (service_order_id, changes)
                  VALUES ($1, '[{"path": "notes", "was": "For Ada", "is": "For Grace"},
                               {"path": "items.0.quantity", "was": 1, "is": 2}]'))
       INSERT INTO cancellations (service_order_id, location_id, requested_by, state, deadline_at, next_attempt_at, problem, cause)
       VALUES ($1, 'club-1', 'platform', 'by_phone', now(), 'infinity', 'it is too late', '{"code": "of_a_newer_version"}')`,
      [serviceOrderId],
    );
    const { body } = await operator.get(path);
    expect(body).toMatchObject({
      cancellation: {
        state: 'by_phone',
        requestedBy: 'platform',
        problem: 'it is too late',
        cause: { code: 'of_a_newer_version' },
        underWay: false,
        nextAttemptAt: null,
        finishedAt: null,
      },
      changes: [{ paths: ['notes', 'items.0.quantity'] }],
    });
    const happened = (body['timeline'] as { what: string }[]).map(({ what }) => what);
    expect(happened).toEqual(expect.arrayContaining(['cancel requested', 'changed']));
    expect(JSON.stringify(body)).not.toMatch(/Ada|Grace/);
    expect((await operator.get(`${path}?contents=true`)).body['changesInFull']).toMatchObject([
      { changes: [{ path: 'notes', was: 'For Ada', is: 'For Grace' }, {}] },
    ]);
    expect(await listed('location=club-1')).toContainEqual(
      expect.objectContaining({ serviceOrderId, cancellation: 'requested' }),
    );
  });

  it.each([
    'with/a/slash',
    'with%percent',
    'with%2Fboth',
    'naïve-ünïcode-🍔',
    "'; DROP TABLE orders; --",
    '../../etc/passwd',
    '..',
    'a b+c&d=e?f#g',
    'live',
    'constructor',
    'x'.repeat(255),
  ])('is found by the percent-encoded id %s', async (serviceOrderId) => {
    await stage.seedOrder({ serviceOrderId, locationId: 'club-1' });
    const path = `/orders/${encodeURIComponent(serviceOrderId).replaceAll('.', '%2E')}`;
    expect(await operator.get(path)).toMatchObject({ status: 200, body: { serviceOrderId } });
    expect(await operator.post(`${path}/retry`)).toMatchObject({ status: 409 });
    await stage.query('DELETE FROM orders WHERE service_order_id = $1', [serviceOrderId]);
  });

  it('is answered 400 for an id that is not percent-encoded', async () => {
    const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
    expect(await sendAsIs(await stage.listen(), '/v1/orders/50%', { headers })).toMatchObject({ status: 400 });
  });
});

describe('an order in doubt', () => {
  const doubted = async (): Promise<string> => {
    const serviceOrderId = `doubted-${randomUUID()}`;
    await stage.seedOrder({ serviceOrderId, locationId: 'mute-1' });
    await stage.query(`UPDATE orders SET rank = 0, sequence = 1 WHERE service_order_id = $1`, [serviceOrderId]);
    await stage.query(
      `UPDATE placements SET state = 'in_doubt', problem = 'no answer', cause = '{"code":"pos_silent"}', finished_at = NULL,
              next_attempt_at = 'infinity', deadline_at = now() + interval '1 h'
       WHERE service_order_id = $1`,
      [serviceOrderId],
    );
    return serviceOrderId;
  };

  it('becomes sent when an operator has found the ticket', async () => {
    const id = await doubted();
    expect(await listed('needs=operator')).toContainEqual(
      expect.objectContaining({ serviceOrderId: id, problem: 'no answer', cause: { code: 'pos_silent' } }),
    );
    expect((await operator.get(`/orders/${id}`)).body['placement']).toMatchObject({ cause: { code: 'pos_silent' } });
    expect(await operator.post(`/orders/${id}/retry`)).toMatchObject({
      status: 409,
      body: { detail: expect.stringContaining('check the POS, then resolve'), cause: { code: 'needs_resolve' } },
    });
    const resolved = await operator.post(`/orders/${id}/resolve`, { there: true, providerOrderId: 'slip-1' });
    expect(resolved).toMatchObject({ status: 200, body: { serviceOrderId: id, state: 'sent', redriven: 0 } });
    expect((await operator.get(`/orders/${id}`)).body['live']).toMatchObject([{ memberState: 'sent' }]);
    await audited('resolve', { serviceOrderId: id, locationId: 'mute-1', before: 'in_doubt', after: 'sent' });
    expect(await ids('needs=operator')).not.toContain(id);
    const refusal = (cause: object): object => ({ status: 409, body: { cause } });
    const resolvedAgain = await operator.post(`/orders/${id}/resolve`, { there: false });
    expect(resolvedAgain).toMatchObject(refusal({ code: 'not_in_doubt', state: 'sent' }));
    expect(await operator.post(`/orders/${id}/retry`)).toMatchObject(refusal({ code: 'already_sent' }));
  });

  it('cannot be resolved with the POS id of another order', async () => {
    const [one, other] = [await doubted(), await doubted()];
    await operator.post(`/orders/${one}/resolve`, { there: true, providerOrderId: 'slip-2' });
    expect(await operator.post(`/orders/${other}/resolve`, { there: true, providerOrderId: 'slip-2' })).toMatchObject({
      status: 409,
      body: { cause: { code: 'pos_id_taken', providerOrderId: 'slip-2', serviceOrderId: one } },
    });
  });

  it('is shown with its cause, even if a newer version wrote an unknown cause', async () => {
    const id = await doubted();
    const cause = { code: 'of_a_newer_version', since: 7 };
    await stage.query('UPDATE placements SET cause = $2 WHERE service_order_id = $1', [id, cause]);
    expect((await operator.get(`/orders/${id}`)).body['placement']).toMatchObject({ cause });
    expect(await listed('needs=operator')).toContainEqual(expect.objectContaining({ serviceOrderId: id, cause }));
  });

  it('is sent again at once when an operator found no ticket', async () => {
    const id = await doubted();
    const resolved = await operator.post(`/orders/${id}/resolve`, { there: false });
    expect(resolved).toMatchObject({ status: 200, body: { state: 'waiting', late: false } });
    const due = 'SELECT next_attempt_at <= now() AS is FROM placements WHERE service_order_id = $1';
    expect(await stage.query(due, [id])).toEqual([{ is: true }]);
  });

  it.each<[string, unknown, string]>([
    ['the id of a missing ticket', { there: false, providerOrderId: 'x' }, 'providerOrderId'],
    ['an id with a NUL', { there: true, providerOrderId: 'a\0' }, 'providerOrderId'],
    ['no JSON', '{"there": tru', 'JSON'],
    ['a prototype', '{"there": true, "__proto__": {"x": 1}}', 'JSON'],
  ])('is not changed by an answer with %s: the result is 400 with a hint', async (_what, body, named) => {
    const { status, text } = await operator.post('/orders/any/resolve', body);
    expect(status).toBe(400);
    expect(text).toContain(named);
  });

  it('is not changed by a body that is too large or not JSON', async () => {
    expect((await operator.post('/orders/any/resolve', { there: true, x: 'x'.repeat(1_000_000) })).status).toBe(413);
    const headers = { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'text/plain' };
    const about = { method: 'POST', headers, body: '{"there":true}' };
    expect((await sendAsIs(stage.app, '/v1/orders/any/resolve', about)).status).toBe(415);
  });
});

describe('a cancellation by an operator', () => {
  const sent = async (): Promise<string> => {
    const serviceOrderId = `cancel-${randomUUID()}`;
    await stage.seedOrder({ serviceOrderId, locationId: 'mute-1' });
    return serviceOrderId;
  };
  const byPhone = (id: string): Promise<unknown> =>
    stage.query(
      `INSERT INTO cancellations (service_order_id, location_id, requested_by, state, deadline_at, next_attempt_at)
       VALUES ($1, 'mute-1', 'platform', 'by_phone', now(), 'infinity')`,
      [id],
    );

  it('starts, and is shown in the audit and with the order', async () => {
    const id = await sent();
    expect(await operator.post(`/orders/${id}/cancel`)).toMatchObject({
      status: 200,
      body: { serviceOrderId: id, cancel: 'asks_pos' },
    });
    await audited('cancel', { serviceOrderId: id, before: 'sent', after: 'sent/due' });
    expect((await operator.get(`/orders/${id}`)).body['cancellation']).toMatchObject({ requestedBy: 'operator' });
  });

  it.each([
    [true, 'cancelled'],
    [false, 'refused'],
  ])("is $1 after the restaurant's answer by phone", async (cancelled, cancellation) => {
    const id = await sent();
    await byPhone(id);
    expect(await operator.post(`/orders/${id}/cancel/conclude`, { cancelled })).toMatchObject({
      status: 200,
      body: { serviceOrderId: id, cancellation },
    });
    await audited('conclude cancel', { serviceOrderId: id, after: `sent/${cancelled ? 'cancelled' : 'refused'}` });
    const { body } = await operator.get(`/orders/${id}`);
    expect(body['cancellation']).toMatchObject({ state: cancellation, finishedAt: expect.any(String) });
    expect(body['order']).toMatchObject(
      cancelled ? { status: 'cancelled', endedAt: expect.any(String) } : { status: null, endedAt: null },
    );
  });

  it('is answered 409 with the cause if there is nothing to cancel', async () => {
    const id = await sent();
    const conclude = (): Promise<unknown> => operator.post(`/orders/${id}/cancel/conclude`, { cancelled: true });
    expect(await conclude()).toMatchObject({ status: 409, body: { cause: { code: 'not_to_be_cancelled' } } });
    await stage.query('UPDATE orders SET ended_at = now() WHERE service_order_id = $1', [id]);
    expect(await operator.post(`/orders/${id}/cancel`)).toMatchObject({
      status: 409,
      body: { detail: expect.stringMatching(/./), cause: { code: 'already_over' } },
    });
  });
});

describe('a change by the platform', () => {
  const changed = async (): Promise<string> => {
    const serviceOrderId = `changed-${randomUUID()}`;
    await seedTrouble(stage, 'changed', { serviceOrderId, locationId: 'mute-1' });
    return serviceOrderId;
  };

  it('is shown until an operator says what the restaurant answered, which the audit and the story have', async () => {
    const id = await changed();
    const { body } = await operator.get(`/orders/${id}`);
    const { since } = body['change'] as { since: string };
    expect(body['change']).toMatchObject({ state: 'not_applied', waits: true, changes: ['1 × Fries added'] });
    const answered = await operator.post(`/orders/${id}/change/answer`, { answer: 'too_late', since });
    expect(answered).toMatchObject({ status: 200, body: { serviceOrderId: id, change: 'too_late' } });
    await audited('answer change', { serviceOrderId: id, after: 'too_late' });
    expect((await operator.get(`/orders/${id}`)).body).toMatchObject({ change: { state: 'too_late', waits: false } });
  });

  it('is not answered by an answer to an earlier change, or to one that needs none: the result is 409', async () => {
    const id = await changed();
    const answer = (body: object): Promise<unknown> => operator.post(`/orders/${id}/change/answer`, body);
    const refused = { status: 409, body: { cause: { code: 'change_settled' } } };
    expect(await answer({ answer: 'done', since: '2027-01-31T18:00:00Z' })).toMatchObject(refused);
    expect(await answer({ answer: 'done' })).toMatchObject({ status: 200 });
    expect(await answer({ answer: 'done' })).toMatchObject(refused);
    await stage.query('UPDATE orders SET ended_at = now() WHERE service_order_id = $1', [id]);
    expect(await answer({ answer: 'done' })).toMatchObject({ status: 409, body: { cause: { code: 'already_over' } } });
  });
});

describe('a past order', () => {
  const id = `past-${randomUUID()}`;
  beforeAll(async () => {
    await stage.seedOrder({ serviceOrderId: id, locationId: 'club-1' });
    await makePast(stage, id);
  });

  it('can be read, but a change is answered 409', async () => {
    expect(await operator.get(`/orders/${id}`)).toMatchObject({ status: 200, body: { past: true, archive: null } });
    const refused = { status: 409, body: { detail: 'It is a past order. It can be read, but not changed.' } };
    expect(await operator.post(`/orders/${id}/retry`)).toMatchObject(refused);
    expect(await operator.post(`/orders/${id}/notes`, { text: 'x' })).toMatchObject(refused);
  });

  it('is found in the audit by its id', async () => {
    const { body } = await operator.get(`/audit?order=${id}`);
    expect(body['actions']).toContainEqual(
      expect.objectContaining({ action: 'retry', outcome: 'refused', serviceOrderId: id, locationId: 'club-1' }),
    );
  });

  it("is answered 410 with its month and location after the order's history was deleted", async () => {
    await dropPast(stage);
    expect(await operator.get(`/orders/${id}`)).toMatchObject({
      status: 410,
      body: {
        type: 'urn:expediter:problem:gone',
        detail: 'The order ended before 2025-03 at club-1. Its history was deleted after HISTORY_DAYS.',
      },
    });
  });
});
