import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { outboxClaimer } from '../../src/core/live/claim-outbox.ts';
import { runCli } from '../support/run-cli.ts';
import { runJson } from '../support/run-json.ts';
import type { Ended } from '../../world/processes/run-program.ts';
import { runRefused } from '../support/run-refused.ts';
import { seedTrouble } from '../core/notices/seed-trouble.ts';
import { startStage, type Stage } from '../support/operator-stage.ts';
import { statusWebhook } from '../../world/pos/status-webhook.ts';

let stage: Stage;

beforeAll(async () => {
  stage = await startStage();
  await stage.addLocation('club-1', { ordersUrl: 'http://127.0.0.1:9/orders' });
  for (let i = 1; i <= 4; i++) {
    await stage.seedOrder({ serviceOrderId: `order-${i}`, locationId: i === 4 ? 'club-2' : 'club-1' });
    await stage.query(
      `UPDATE placements SET signalled_at = now() - make_interval(hours => $2) WHERE service_order_id = $1`,
      [`order-${i}`, 5 - i],
    );
  }
  await stage.query(
    `UPDATE placements SET state = 'in_doubt', finished_at = NULL, next_attempt_at = 'infinity',
            problem = 'the POS may have it', cause = '{"code":"restored"}' WHERE service_order_id = 'order-2'`,
  );
  await stage.query(`UPDATE orders SET ended_at = now() WHERE service_order_id = 'order-1'`);
});
afterAll(() => stage?.stop());

const cli = (...args: string[]): Promise<Ended> => runCli(stage.env, args);

describe('expediter order list', () => {
  it.each([
    ['', 'order-4 order-3 order-2 order-1'],
    ['--needs-operator', 'order-2'],
    ['--open --location club-1', 'order-3 order-2'],
    ['--member-state sent --limit 2', 'order-4 order-3'],
    ['--limit 2 --after order-3', 'order-2 order-1'],
    ['--since 150m', 'order-4 order-3'],
    ['--until 150m', 'order-2 order-1'],
  ])('prints the orders $1 for the filters "$0"', async (filters, expected) => {
    const { code, out, error } = await cli(...`order list --json ${filters}`.trim().split(' '));
    expect({ code, error }).toEqual({ code: 0, error: '' });
    const ids = (JSON.parse(out) as { serviceOrderId: string }[]).map((row) => row.serviceOrderId);
    expect(ids.join(' ')).toBe(expected);
  });

  it('prints problem and cause of an order in JSON', async () => {
    const listed = await runJson(stage.env, ['order', 'list', '--needs-operator']);
    expect(listed).toMatchObject([{ problem: 'the POS may have it', cause: { code: 'restored' } }]);
    const shown = await runJson(stage.env, ['order', 'show', 'order-2']);
    expect(shown).toMatchObject({ placement: { cause: { code: 'restored' } } });
  });

  it('prints a table with the orders that need a person, and how to see more', async () => {
    const { out } = await cli('order', 'list', '--limit', '3');
    expect(out).toMatch(/^code {2}order {4,}signalled .*location .*placement/);
    expect(out).toMatch(/^K472 {2}order-2 .*in doubt: needs you.*the POS may have it$/m);
    expect(out).toMatch(/\nThere may be more: --after order-2\n$/);
    expect((await cli('order', 'list', '--status', 'failed')).out).toBe('No orders match.\n');
  });

  it.each<[string[], number, string]>([
    [['--state', 'lost'], 2, 'Allowed choices are waiting, held'],
    [['--limit', '0'], 2, 'a number from 1 to 1000'],
    [['--since', 'tomorrow'], 2, 'a while ago'],
    [['--after', 'nobody'], 3, '--after: no list ends with "nobody"'],
  ])('refuses the arguments %j with exit code %i: %s', async (filters, code, message) => {
    expect(await runRefused(code, stage.env, ['order', 'list', ...filters])).toContain(message);
  });
});

describe('expediter order show', () => {
  it("says what to do about an order's problem", async () => {
    const { out } = await cli('order', 'show', 'order-2');
    expect(out).toMatch(
      /^to do +Call the restaurant, or look at the POS: is the ticket there\? Then enter the answer$/m,
    );
    expect((await cli('order', 'show', 'order-4')).out).not.toMatch(/^to do/m);
  });

  it('shows the requested time, the webhooks and the live messages of an order', async () => {
    const answer = await stage.post(
      await stage.webhookPath('club-1'),
      statusWebhook({ serviceOrderId: 'order-3', status: 'READY' }),
    );
    const claim = outboxClaimer({ way: 'topic', isOnly: true });
    await claim(stage.pool, await claim(stage.pool, [], 10), 10);
    await stage.query(`UPDATE orders SET requested_at = '2027-01-31T20:30Z' WHERE service_order_id = 'order-3'`);
    const { out } = await cli('order', 'show', 'order-3');
    expect(out).toMatch(new RegExp(`^Webhooks\\nwebhook.*\\n${String(answer.body['webhookId'])} .*applied`, 'm'));
    expect(out).toMatch(/^wanted for +2027-01-31 20:30/m);
    expect(out).toMatch(/^Live messages\nsequence {2}member sees.*\n3 +ready_for_pickup +\d{4}-.*Z +\d{4}-.*Z$/m);
  });
});

it('expediter order list and order show print why an order cannot be fetched again, since when, and what to do', async () => {
  await stage.query(
    `INSERT INTO refreshes (service_order_id, next_attempt_at, failures, failing_since, problem, cause)
     VALUES ('order-3', '2027-01-31T18:05:00Z', 2, '2027-01-31T18:00:00Z', 'the platform answered 503', '{"code":"platform_failing"}')`,
  );
  expect((await cli('order', 'list')).out).toMatch(
    /order-3 .*not fetched again: the platform answered with an error of its own$/m,
  );
  const { out } = await cli('order', 'show', 'order-3');
  expect(out).toMatch(
    /^not fetched again +since 2027-01-31 18:00.*: the platform answered with an error of its own \(the platform answered 503\)\. Next try: 2027-01-31 18:05/m,
  );
  expect(out).toMatch(/^to do +Check that the ordering platform is up/m);
  await stage.query(`DELETE FROM refreshes`);
});

describe('expediter order answer', () => {
  it('records what the restaurant said about a change, which the list and "show" ask for', async () => {
    await seedTrouble(stage, 'changed', { serviceOrderId: 'changed', locationId: 'club-1' });
    const list = (await cli('order', 'list', '--needs-operator')).out;
    expect(list).toMatch(/changed .*: needs you .*1 × Fries added/);
    const { out } = await cli('order', 'show', 'changed');
    expect(out).toMatch(
      /^change +not applied, since \d{4}-.*; 1 × Fries added\. Tell the restaurant, then: expediter order answer changed --change done \| too_late$/m,
    );
    expect((await cli('order', 'answer', 'changed', '--change', 'too_late')).out).toContain('is too late');
    expect((await cli('order', 'show', 'changed')).out).toMatch(/^change +too late, since .*; 1 × Fries added$/m);
    expect(await runRefused(1, stage.env, ['order', 'answer', 'changed', '--change', 'done'])).toContain(
      'was answered',
    );
  });
});

describe('expediter order cancel', () => {
  it('requests a cancellation, and with --by-phone records what the restaurant said', async () => {
    await stage.seedOrder({ serviceOrderId: 'to-cancel', locationId: 'club-1' });
    await stage.seedOrder({ serviceOrderId: 'asked', locationId: 'club-1' });
    expect((await cli('order', 'cancel', 'asked')).out).toContain('its POS is asked');
    expect((await cli('order', 'list', '--limit', '1')).out).toContain('requested');
    await stage.query(
      `INSERT INTO cancellations (service_order_id, location_id, requested_by, state, deadline_at, next_attempt_at, problem)
       VALUES ('to-cancel', 'club-1', 'operator', 'by_phone', now(), 'infinity', 'it cannot be asked')`,
    );
    await stage.query(
      `INSERT INTO order_changes VALUES ('to-cancel', now(), '[{"path": "notes", "was": "For Ada", "is": "For Grace"}]')`,
    );
    const { out } = await cli('order', 'show', 'to-cancel');
    expect(out).toMatch(
      /^cancel +by phone, requested by the operator at \d{4}-.*: it cannot be asked\. Call, then: expediter order cancel to-cancel --by-phone cancelled \| refused$/m,
    );
    expect(out).toMatch(/^changed since +notes$/m);
    expect(out).not.toMatch(/Ada|Grace/);
    const done = await runJson(stage.env, ['order', 'cancel', 'to-cancel', '--by-phone', 'cancelled']);
    expect(done).toMatchObject({ cancellation: 'cancelled' });
  });

  it.each<[string[], number, string]>([
    [['to-cancel'], 1, 'to-cancel: the order has ended'],
    [['order-3', '--by-phone', 'refused'], 1, 'order-3: no cancellation of the order was requested'],
    [['nobody', '--by-phone', 'cancelled'], 3, 'nobody: No order has this id.'],
    [['order-3', '--by-phone', 'maybe'], 2, 'Allowed choices are cancelled, refused'],
  ])('refuses the arguments %j with exit code %i: %s', async (args, code, message) => {
    expect(await runRefused(code, stage.env, ['order', 'cancel', ...args])).toContain(message);
  });
});
