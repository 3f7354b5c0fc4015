import { may } from '../may.ts';
import { isCaseClosed } from '../orders/what-to-do.ts';
import { CaseAndNotes } from '../parts/case.tsx';
import { CloseDialog, Dialog } from '../parts/dialog.tsx';
import { ask } from '../api.ts';
import { Loading } from '../parts/loading.tsx';
import { useLoaded } from '../parts/use-loaded.ts';
import type { ShownLocation, ShownOrder } from '../wire.ts';
import type { Subject } from './needs-of.ts';

/** Others may act on it meanwhile. */
const EVERY_MS = 5_000;

type AboutCaseDialog = { subject: Subject; name: string; isSilent: boolean; onClose: () => void };

/** The case of an order or a location, without leaving the board. */
export function CaseDialog({ subject, name, isSilent, onClose }: AboutCaseDialog) {
  const path = `/${subject.kind}s/${encodeURIComponent(subject.id)}`;
  const loaded = useLoaded((signal) => ask<ShownOrder | ShownLocation>('GET', path, { signal }), [path], EVERY_MS);
  return (
    <Dialog title={name} onClose={onClose}>
      <Loading loaded={loaded}>
        {(care) => (
          <CaseAndNotes
            path={path}
            care={care}
            isNeeded={'placement' in care ? !isCaseClosed(care) : care.closedAt === null}
            isSilent={isSilent}
            mayAct={may('operator', subject.locationId)}
            reload={loaded.again}
          />
        )}
      </Loading>
      <CloseDialog words="Back to the board" />
    </Dialog>
  );
}
