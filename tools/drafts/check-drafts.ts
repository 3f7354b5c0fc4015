/**
 * `npm run drafts -- FOLDER`: drafts a mapper from each published schema in a folder, and says which fields are right. It
 * also checks the example mappers against them.
 *
 * The folder holds, as SDL: vendure-shop.graphql and vendure-admin.graphql (`@vendure/core`, with the custom fields
 * Order.note, Order.wantedAt, OrderLine.modifiers and OrderLine.note), saleor.graphql (saleor/saleor),
 * shopify-admin.graphql (`@shopify/dev-mcp` has its introspection), shopify-customer.graphql and
 * shopify-storefront.graphql (`@shopify/hydrogen`). They are not ours, so they are not committed. A missing one is an error.
 */
import { join } from 'node:path';
import { draftModule, readSchema } from '../../src/platform/draft-module.ts';
import { checkMappers } from './check-mappers.ts';
import { judgeDraft, typeErrorsOf, type Judged } from './judge-draft.ts';
import { TABLES } from './published-tables.ts';

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('Name the folder of the schemas: npm run drafts -- FOLDER');

const drafts: Record<string, string> = {};
let faults = 0;
const fault = (text: string): void => {
  faults += 1;
  console.log(`  FAULT ${text}`);
};
const count = (rows: readonly Judged[], verdict: string): number =>
  rows.filter((row) => row.verdict === verdict).length;

for (const [name, table] of Object.entries(TABLES)) {
  const started = performance.now();
  const schema = await readSchema(join(folder, `${name}.graphql`));
  let text: string | undefined;
  try {
    ({ text } = draftModule(schema));
  } catch (error) {
    console.log(`\n${name}: refused: ${(error as Error).message}`);
    if (table !== null) fault('it has orders by id');
    continue;
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  if (table === null) {
    console.log(`\n${name}: drafted in ${seconds} s`);
    fault('it has no order by an id, and must be refused');
    continue;
  }
  drafts[name] = text;
  const judged = judgeDraft(schema, text, table);
  const verdicts = ['right', 'TODO', 'wrong'].map((verdict) => `${count(judged.rows, verdict)} ${verdict}`);
  console.log(`\n${name}: ${verdicts.join(', ')}, ${text.trimEnd().split('\n').length} lines, ${seconds} s`);
  for (const { field, verdict, drafted } of judged.rows)
    console.log(`  ${verdict.padEnd(5)} ${field.padEnd(36)} ${drafted.replaceAll('\n', ' ').slice(0, 120)}`);
  for (const each of judged.faults) fault(each);
  faults += count(judged.rows, 'wrong');
}
console.log('');
for (const each of await typeErrorsOf(drafts)) fault(each);
// The examples are written by hand, so nothing of them may be wrong.
for (const each of await checkMappers(folder)) fault(`example: ${each}`);
console.log(faults === 0 ? 'All are right, or a TODO.' : `${faults} faults.`);
process.exitCode = faults === 0 ? 0 : 1;
