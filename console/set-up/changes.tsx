import { Badge } from '../parts/badge.tsx';
import { NAMED } from '../parts/names.ts';
import { Said } from '../parts/said.tsx';
import type { LocationChange } from '../wire.ts';
import { fieldInWords, whatChanged } from '../../src/core/domain/describe-change.ts';
import { Heads } from '../parts/heads.tsx';

/** What is stored although it is unusual. */
export function Warnings({ warnings }: { warnings: readonly string[] }) {
  return warnings.map((warning) => (
    <p key={warning}>
      <Badge tone="warn">unusual</Badge> <Said text={warning} />
    </p>
  ));
}

/** What a change of a location does, or would do. A secret has no value here. */
export function Changes({ changes, isNew = false }: { changes: readonly LocationChange[]; isNew?: boolean }) {
  return (
    <table class="changes">
      <Heads of={['Field', isNew ? 'Value' : 'Change']} />
      <tbody>
        {changes.map((change) => (
          <tr key={change.field}>
            <th scope="row">{fieldInWords(change.field)}</th>
            <td>{whatChanged(change, NAMED)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
