import { FIGURES, type Score } from './score-figures.ts';
import './vendors.css';

type Row = { name: string; href?: string; score: Score };

/**
 * Scorecards below each other, a figure in each column.
 * @param table.by the figure whose highest value comes first
 * @param table.onSort compares the rows. Without it, they are periods of one scorecard
 */
export function ScoreTable(table: { what: string; rows: readonly Row[]; by?: string; onSort?: (by: string) => void }) {
  const { what, by, onSort } = table;
  const sorted = FIGURES.find(({ name }) => name === by) ?? FIGURES[0];
  const badness = ({ score }: Row): number => sorted?.badness(score) ?? -1;
  const rows = onSort === undefined ? table.rows : table.rows.toSorted((one, other) => badness(other) - badness(one));
  return (
    <>
      <p class="vendors-about faint">
        Orders that reached the POS, in whole hours, updated every ten minutes.
        {onSort && ' Press a column to see its worst first.'}
      </p>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- scrolling needs the keyboard */}
      <section class="scroll-x" tabIndex={0} aria-label={`Figures by ${what}`}>
        <table class="vendors-scores lines">
          <thead>
            <tr>
              <th scope="col">{what}</th>
              {FIGURES.map(({ name }) => (
                <th key={name} scope="col" aria-sort={onSort && name === sorted?.name ? 'descending' : undefined}>
                  {onSort ? (
                    <button type="button" class="quiet" onClick={() => onSort(name)}>
                      {name}
                    </button>
                  ) : (
                    name
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ name, href, score }) => (
              <tr key={href ?? name}>
                <th scope="row">{href === undefined ? name : <a href={href}>{name}</a>}</th>
                {FIGURES.map(({ name, show, parts }) => (
                  <td key={name} data-name={name}>
                    {show(score)}
                    {parts?.(score).map((part) => (
                      <span key={part} class="vendors-part">
                        {part}
                      </span>
                    ))}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}
