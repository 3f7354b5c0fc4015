import { useEffect, useState } from 'preact/hooks';
import { ask } from '../api.ts';
import { Badge } from '../parts/badge.tsx';
import { Dated } from '../parts/dated.tsx';
import { Problem, Said } from '../parts/said.tsx';
import { Time } from '../parts/time.tsx';
import { WithRole } from '../parts/with-role.tsx';
import type { CheckedLocation } from '../wire.ts';
import { may } from '../may.ts';

type Test = { checked: CheckedLocation; at: string } | { problem: string };

type AboutTest = { locationId: string; canCheck: boolean; isNew: boolean };

/** Tests whether the settings reach the POS, and a new location at once. An item of the list of what connects a location. */
export function ConnectionTest({ locationId, canCheck, isNew }: AboutTest) {
  const [test, setTest] = useState<Test>();
  const [isBusy, setBusy] = useState(false);

  const check = async (): Promise<void> => {
    if (isBusy) return;
    setBusy(true);
    try {
      const checked = await ask<CheckedLocation>('POST', `/locations/${encodeURIComponent(locationId)}/check`);
      setTest({ checked, at: new Date().toISOString() });
    } catch (error) {
      setTest({ problem: (error as Error).message });
    }
    setBusy(false);
  };
  useEffect(() => {
    if (isNew && may('operator or integrator', locationId)) void check();
  }, []);

  return (
    <li>
      <div class="apart connection-head">
        <h3>Settings</h3>
        <WithRole needs="operator or integrator" at={locationId} to="To test them">
          <button type="button" onClick={() => void check()} aria-disabled={isBusy} aria-describedby="location-test">
            {isBusy ? 'Testing …' : 'Test connection'}
          </button>
        </WithRole>
      </div>
      <div id="location-test" aria-live="polite">
        {test === undefined ? (
          <p class="faint">
            {canCheck
              ? 'Calls the POS with the stored settings. It changes nothing there and makes no order.'
              : 'This POS has no call that tests credentials. The test only reads the settings.'}
          </p>
        ) : 'problem' in test ? (
          <p class="problem">The test failed: {test.problem}</p>
        ) : (
          <Result {...test} />
        )}
      </div>
    </li>
  );
}

function Result({ checked, at }: { checked: CheckedLocation; at: string }) {
  if (checked.state === 'ok') {
    return (
      <p>
        <Badge tone="good">ok</Badge> The settings reach the POS{checked.now && `; ${checked.now}`}. Tested{' '}
        <Time at={at} />.
      </p>
    );
  }
  if (checked.state === 'unchecked') {
    return (
      <p>
        <Badge tone="warn">settings read</Badge> The settings can be read, but <Said text={checked.detail} />.
      </p>
    );
  }
  return <Failed {...checked} at={at} />;
}

/** Why a test failed, and what to do. @param at when it was */
export function Failed({ problem, toDo, at = null }: { problem: string; toDo: string; at?: string | null }) {
  return (
    <>
      <div>
        <Badge tone="bad">failed</Badge> <Problem text={problem} /> <Dated before="Tested" at={at} />
      </div>
      <p>
        <b>What to do:</b> <Said text={toDo.replace(/\.?$/, '.')} />
      </p>
    </>
  );
}
