import { readFile, writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { ACCESS } from '../../../src/operators/registry.ts';

const PAGE = new URL('../../../docs/operator-api.md', import.meta.url);
const HEAD = /^\| route +\| role .*\n\|[- |]+\n/m;

const ROWS = Object.entries(ACCESS).map(([route, { role, of, reveals }]) => [
  `\`${route}\``,
  `\`${role}\``,
  `\`${of}\``,
  reveals === undefined ? '' : '`member-data`',
]);

/** To write it anew: `WRITE_TABLE=1 npx vitest run test/http/operator/access-table.test.ts`, then `npx oxfmt docs`. */
it('the page has the role of every route, as ACCESS has it', async () => {
  const page = await readFile(PAGE, 'utf8');
  const head = HEAD.exec(page);
  const from = (head?.index ?? 0) + (head?.[0].length ?? 0);
  const table = /^(\|.*\n)*/.exec(page.slice(from))?.[0] ?? '';
  if (process.env['WRITE_TABLE'] !== undefined) {
    const written = ROWS.map((cells) => `| ${cells.join(' | ')} |\n`).join('');
    await writeFile(PAGE, page.slice(0, from) + written + page.slice(from + table.length));
    return;
  }
  const rows = table
    .trim()
    .split('\n')
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
  expect(rows).toEqual(ROWS);
});
