import { useState } from 'preact/hooks';
import { AskButton } from '../parts/ask-button.tsx';
import { Acts } from '../audit/actions.tsx';
import { may } from '../may.ts';
import { Badge } from '../parts/badge.tsx';
import { WithRole } from '../parts/with-role.tsx';
import { ConnectionTest } from '../locations/connection-test.tsx';
import { LastSeen } from '../locations/locations-page.tsx';
import type { ShownLocation } from '../wire.ts';
import { ConnectDialog, LinkDialog, NewAddress, TestOrderDialog, TokenDialog } from './connection-dialogs.tsx';
import './set-up.css';
import { firstAddress } from './new-location.ts';

type Dialog = 'connect' | 'token' | 'link' | 'test';

type AboutConnection = { location: ShownLocation; onDone: () => void; isNew: boolean };

/** The three things that connect a location with its POS. They can be done at any time, and again. */
export function Connection({ location, onDone, isNew }: AboutConnection) {
  const { locationId, knows, validTokens, lastSeenAt } = location;
  const [dialog, setDialog] = useState<Dialog>();
  const close = (): void => setDialog(undefined);
  const hasLink = (knows as { connectLink?: boolean }).connectLink ?? false;
  const last = location.actions.find(({ action }) => action === 'test order');
  const shared = { location, onDone, onClose: close };
  return (
    <section class="sheet" aria-labelledby="location-connection">
      <h2 id="location-connection">Connection</h2>
      <ol class="connection">
        <ConnectionTest locationId={locationId} canCheck={knows.check} isNew={isNew} />
        <li>
          <div class="apart connection-head">
            <h3>Webhooks</h3>
            <WithRole needs="integrator" at={locationId} to="To connect it">
              <div class="buttons">
                {hasLink && <AskButton onClick={() => setDialog('link')}>Connect link</AskButton>}
                {knows.connect && <AskButton onClick={() => setDialog('connect')}>Connect</AskButton>}
                <AskButton onClick={() => setDialog('token')}>Make a token</AskButton>
              </div>
            </WithRole>
          </div>
          <p>
            {validTokens === 0 ? (
              <>
                <Badge tone="warn">no token</Badge> The POS cannot send webhooks yet.{' '}
                {may('integrator', locationId) &&
                  (knows.connect
                    ? 'Connect it, and the POS gets its address.'
                    : 'Make a token, and enter its address at the POS.')}
              </>
            ) : (
              <>
                {validTokens} valid {validTokens === 1 ? 'token' : 'tokens'}; last webhook <LastSeen at={lastSeenAt} />
              </>
            )}
          </p>
          {isNew && firstAddress.value?.locationId === locationId && <NewAddress url={firstAddress.value.url} />}
        </li>
        <li>
          <div class="apart connection-head">
            <h3>Test order</h3>
            <WithRole needs="integrator" at={locationId} to="To place one">
              <AskButton onClick={() => setDialog('test')}>Place a test order</AskButton>
            </WithRole>
          </div>
          <p class="faint">The kitchen sees a ticket with the name “TEST, do not cook”.</p>
          {last && <Acts actions={[last]} at={locationId} label="The last test order" />}
        </li>
      </ol>
      {dialog === 'connect' && <ConnectDialog {...shared} />}
      {dialog === 'token' && <TokenDialog {...shared} />}
      {dialog === 'link' && <LinkDialog {...shared} />}
      {dialog === 'test' && <TestOrderDialog {...shared} />}
    </section>
  );
}
