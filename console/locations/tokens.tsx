import { useState } from 'preact/hooks';
import { AskButton } from '../parts/ask-button.tsx';
import { ask } from '../api.ts';
import { may } from '../may.ts';
import { announce } from '../parts/announce.ts';
import { Badge } from '../parts/badge.tsx';
import { now } from '../parts/clock.ts';
import { Confirm } from '../parts/confirm.tsx';
import { Dated } from '../parts/dated.tsx';
import { Ago } from '../parts/time.tsx';
import type { Tone } from '../parts/tones.ts';
import { WithRole } from '../parts/with-role.tsx';
import type { RevokedToken, ShownLocation } from '../wire.ts';
import { inOrder, lostWith, tokenName } from './assess-location.ts';

type Token = ShownLocation['tokens'][number];

const TONES: Record<Token['state'], Tone> = {
  valid: 'good',
  expired: 'plain',
  revoked: 'plain',
  'of another integration': 'warn',
};

type About = { location: ShownLocation; onRevoked: () => void };

/** The tokens of a location, with age, last use and revocation. */
export function Tokens({ location, onRevoked }: About) {
  const [chosen, setChosen] = useState<Token>();
  const { tokens } = location;
  const canRevoke = may('integrator', location.locationId);
  if (tokens.length === 0) return <p>No token yet: the POS cannot send webhooks.</p>;
  return (
    <>
      <h3 id="location-tokens">Tokens</h3>
      <p class="faint">
        <WithRole needs="integrator" at={location.locationId} to="To revoke a token">
          To replace a token, first make the new one (under Connection), then revoke the old one.
        </WithRole>
      </p>
      <ul class="lined" aria-labelledby="location-tokens">
        {inOrder(tokens).map((token) => (
          <li key={token.tokenId} class="apart">
            <div class="locations-token">
              <span class="locations-label">
                <b title={token.tokenId}>{tokenName(token)}</b> <Badge tone={TONES[token.state]}>{token.state}</Badge>
              </span>
              <span>
                <Dated before="Used" at={token.lastUsedAt} none="Never used" isAgo />
                <span class="faint">
                  , made <Ago at={token.createdAt} />, <End token={token} />
                </span>
              </span>
            </div>
            {canRevoke && (token.state === 'valid' || token.state === 'of another integration') && (
              <AskButton aria-label={`Revoke ${tokenName(token)}`} onClick={() => setChosen(token)}>
                Revoke
              </AskButton>
            )}
          </li>
        ))}
      </ul>
      {chosen !== undefined && (
        <ConfirmRevocation token={chosen} {...{ location, onRevoked }} onClose={() => setChosen(undefined)} />
      )}
    </>
  );
}

function End({ token: { revokedAt, expiresAt, state } }: { token: Token }) {
  if (revokedAt !== null) return <Dated before="revoked" at={revokedAt} isAgo />;
  return <Dated before={state === 'expired' ? 'expired' : 'expires'} at={expiresAt} none="never expires" />;
}

function ConfirmRevocation({ token, location, onRevoked, onClose }: About & { token: Token; onClose: () => void }) {
  const { locationId, tokens } = location;
  const { tokenId } = token;
  const lost = lostWith(tokenId, tokens, now.peek());

  const revoke = async (): Promise<void> => {
    await ask<RevokedToken>('DELETE', `/locations/${encodeURIComponent(locationId)}/tokens/${tokenId}`);
    announce(`${tokenName(token)} is revoked`);
    onRevoked();
  };

  return (
    <Confirm
      title={`Revoke ${tokenName(token)}?`}
      action="Revoke the token"
      isDangerous
      onConfirm={revoke}
      onClose={onClose}
    >
      <dl>
        <dt>Last used</dt>
        <dd>{token.lastUsedAt === null ? 'never' : <Ago at={token.lastUsedAt} />}</dd>
      </dl>
      {token.state === 'valid' ? (
        <p>Within 5 s, webhooks with this token are refused, and stored for a day. This cannot be undone.</p>
      ) : (
        <p>
          The token is not valid now, because the location has another integration. After you revoke it, it also stays
          invalid if the location returns to the former integration. This cannot be undone.
        </p>
      )}
      {lost !== undefined && <p class="problem">{lost} Make the new one first.</p>}
    </Confirm>
  );
}
