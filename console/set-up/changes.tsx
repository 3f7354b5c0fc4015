import { Badge } from '../parts/badge.tsx';
import type { LocationChange } from '../wire.ts';
import { labelOf } from './label-of.ts';

/** What is stored although it is unusual. */
export function Warnings({ warnings }: { warnings: readonly string[] }) {
  return warnings.map((warning) => (
    <p key={warning}>
      <Badge tone="warn">unusual</Badge> {warning}
    </p>
  ));
}

/** What a change of a location does, or would do. A secret has no value here. */
export function Changes({ changes, isNew = false }: { changes: readonly LocationChange[]; isNew?: boolean }) {
  return (
    <table class="changes">
      <thead>
        <tr>
          <th scope="col">Field</th>
          {!isNew && <th scope="col">Before</th>}
          <th scope="col">{isNew ? 'Value' : 'After'}</th>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ field, before, after }) => (
          <tr key={field}>
            <th scope="row">{labelOf(field.replace(/^settings\./, ''))}</th>
            {!isNew && <td>{before === null ? <span class="faint">none</span> : listed(before)}</td>}
            <td>{after === null ? <span class="faint">removed</span> : wordsOf(before, after)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function wordsOf(before: string | null, after: string): string {
  if (before !== after) return listed(after);
  return after === 'set' ? 'set to another value' : `${after} (changed)`;
}

/** Writes a JSON list of words without its brackets. A long one was cut off, and stays as it is. */
function listed(text: string): string {
  return /^\["[^"\\]*"(,"[^"\\]*")*\]$/.test(text) ? (JSON.parse(text) as string[]).join(', ') : text;
}
