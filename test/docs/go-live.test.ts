/** The checklists, from a contract to the first order cooked: docs/go-live.md and one in each page of docs/providers. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { compareSums } from '../../src/diagnostics/check-order.ts';
import { CanonicalOrder } from '../../src/core/domain/order.ts';
import { registry } from '../../src/providers/index.ts';
import { sampleOrder } from '../support/sample-order.ts';

const read = (page: string): string => readFileSync(new URL(`../../docs/${page}`, import.meta.url), 'utf8');

const HEADINGS = [
  '1. Account and contract',
  '2. Scopes and credentials',
  '3. Certification by the vendor',
  '4. The location here',
  '5. Items',
  '6. Taxes, tips, fees',
  '7. Test order',
  '8. What the kitchen must see',
  '9. The first day',
  'Proven, documented, unknown',
];

it.each([...registry.keys()])('the page of %s begins with the checklist, under the headings of all', (integration) => {
  const [, first = '', checklist = ''] = read(`providers/${integration}.md`).split(/^## (.+)$/m);
  expect(first).toBe('Go live');
  expect([...checklist.matchAll(/^### (.+)$/gm)].map(([, heading]) => heading)).toEqual(HEADINGS);
  expect(checklist).toContain(`expediter location put --location club-1 --integration ${integration} `);
  expect(checklist).toContain('expediter certify --location club-1 ');
  expect(read('go-live.md')).toContain(`(providers/${integration}.md#go-live)`);
});

it('the test order of the page can be ordered, and its sums add up', () => {
  const [, json = ''] = /^```json\n(.*?)^```$/ms.exec(read('go-live.md')) ?? [];
  const contents = CanonicalOrder.pick({ items: true, fulfillment: true, money: true })
    .strict()
    .parse(JSON.parse(json));
  expect(compareSums({ ...sampleOrder(), ...contents })).toEqual([]);
});
