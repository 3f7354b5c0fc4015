import { ask } from '../api.ts';
import { may } from '../may.ts';
import { CaseAndNotes } from '../parts/case.tsx';
import { closeDialog, Dialog } from '../parts/dialog.tsx';
import { Loading } from '../parts/loading.tsx';
import { useLoaded } from '../parts/use-loaded.ts';
import type { ShownLocation, ShownOrder } from '../wire.ts';
import type { Subject } from './needs-of.ts';

/** The case of an order or a location, without leaving the board. */
export function CaseDialog({
  subject,
  name,
  isSilent,
  onClose,
}: {
  subject: Subject;
  name: string;
  isSilent: boolean;
  onClose: () => void;
}) {
  const path = `/${subject.kind}s/${encodeURIComponent(subject.id)}`;
  const loaded = useLoaded(
    (signal) => ask<Pick<ShownOrder & ShownLocation, 'case' | 'snoozedUntil' | 'notes'>>('GET', path, { signal }),
    [path],
  );
  return (
    <Dialog title={name} onClose={onClose}>
      <Loading loaded={loaded}>
        {({ case: taken, snoozedUntil, notes }) => (
          <CaseAndNotes
            path={path}
            case={taken}
            snoozedUntil={snoozedUntil}
            notes={notes}
            isSilent={isSilent}
            mayAct={may('operator', subject.locationId)}
            reload={loaded.again}
          />
        )}
      </Loading>
      <div class="buttons">
        <button type="button" onClick={closeDialog}>
          Back to the board
        </button>
      </div>
    </Dialog>
  );
}
