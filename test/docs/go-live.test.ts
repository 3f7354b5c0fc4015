/** The one checklist, docs/go-live.md, from a contract to the first order cooked; and what differs in docs/providers. */
import { expect, it } from 'vitest';
import { checkSums } from '../../src/core/domain/check-sums.ts';
import { CanonicalOrder } from '../../src/core/domain/order.ts';
import { registry } from '../../src/providers/index.ts';
import { sampleOrder } from '../../world/platform/sample-order.ts';
import { read } from '../support/read-project.ts';

const inOneLine = (text: string): string => text.replaceAll(/\s+/g, ' ');

/** The text under each heading of the second level. */
function sectionsOf(page: string): Map<string, string> {
  const parts = read(`docs/${page}`).split(/^## (.+)$/m);
  const headings = parts.filter((_, i) => i % 2 === 1);
  return new Map(headings.map((heading, i) => [heading, parts[2 * i + 2] ?? '']));
}

const STEPS = [
  'Before the first restaurant',
  'The location',
  'The menu and the money',
  'The test order',
  'What the kitchen must see',
  'The first day',
];

/** What differs from POS to POS. Each page has these sections, and says this much in them. */
const DIFFERENCES: Readonly<Record<string, readonly RegExp[]>> = {
  'Account and credentials': [/\*\*Account/, /\*\*Credentials/, /\*\*The restaurant/, /\*\*Certification/],
  Settings: [/^```json$/m],
  'Checking the settings': [/expediter provider check/],
  'Connecting the webhook': [/expediter provider connect/],
  'Items and money': [/\*\*Items/, /tax/i, /fee/i, /tip/i],
  'Test order': [/^expediter certify --location club-1 /m],
  'In the kitchen': [/call-?out ?code/i, /\bage/i],
  'What a status means': [/`/],
  'When the POS is silent': [/poll/i],
  Cancels: [/cancel/i],
  Orders: [/deduplication|one ticket/i],
  'What is not known': [/\w/],
};

it('docs/go-live.md has every step, and names each section of the pages of POS systems', () => {
  const sections = sectionsOf('go-live.md');
  expect([...sections.keys()].slice(0, STEPS.length)).toEqual(STEPS);
  for (const step of STEPS) expect(sections.get(step), step).toContain('- [ ] ');
  expect([...sections.keys()].at(-1)).toBe('Proven, documented, unknown');

  const page = read('docs/go-live.md');
  for (const command of [
    'expediter location put --location club-1 --integration ',
    'expediter provider connect club-1',
    'expediter provider check club-1',
    'expediter certify --location club-1 --order order.json ',
  ]) {
    expect(page).toContain(`\n${command}`);
  }
  for (const section of Object.keys(DIFFERENCES)) expect(inOneLine(page)).toContain(`_${section}_`);
});

it.each([...registry.keys()])(
  'the page of %s has every required heading, and every required fact below it',
  (integration) => {
    expect(read('docs/go-live.md')).toContain(`(providers/${integration}.md)`);
    const page = `providers/${integration}.md`;
    const [beginning = ''] = read(`docs/${page}`).split('\n## ');
    expect(beginning).toContain(`Integration \`${integration}\``);
    expect(beginning).toContain('(../go-live.md)');

    const sections = sectionsOf(page);
    expect([...sections.keys()].filter((heading) => heading in DIFFERENCES)).toEqual(Object.keys(DIFFERENCES));
    for (const [heading, facts] of Object.entries(DIFFERENCES)) {
      for (const fact of facts) expect(sections.get(heading), heading).toMatch(fact);
    }
  },
);

it('the test order of docs/go-live.md is valid, and its sums add up', () => {
  const [, json = ''] = /^```json\n(.*?)^```$/ms.exec(read('docs/go-live.md')) ?? [];
  const contents = CanonicalOrder.pick({ items: true, fulfillment: true, money: true })
    .strict()
    .parse(JSON.parse(json));
  expect(checkSums({ ...sampleOrder(), ...contents })).toEqual([]);
});
