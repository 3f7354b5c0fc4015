import { useState } from 'preact/hooks';
import { AskButton } from '../parts/ask-button.tsx';
import { ask } from '../api.ts';
import { announce } from '../parts/announce.ts';
import { Badge } from '../parts/badge.tsx';
import { endAfter, Expires } from '../parts/expires.tsx';
import { Text } from '../parts/form.tsx';
import { Confirm } from '../parts/confirm.tsx';
import { Copyable } from '../parts/copyable.tsx';
import { Loading } from '../parts/loading.tsx';
import { Dated } from '../parts/dated.tsx';
import { Ago } from '../parts/time.tsx';
import { useLoaded } from '../parts/use-loaded.ts';
import type { OperatorToken } from '../wire.ts';
import { RightFields } from './right-fields.tsx';
import { rightInWords } from './right-in-words.ts';
import { NOTHING, rightOf, type Draft } from './right-of.ts';

/**
 * Tokens of programs, and of people who cannot sign in otherwise.
 * @param wanted the roles of a token that is being made
 */
export function NamedTokens({ wanted, onWant }: { wanted: Draft | undefined; onWant: (draft?: Draft) => void }) {
  const loaded = useLoaded((signal) => ask<{ tokens: OperatorToken[] }>('GET', '/operators/tokens', { signal }), []);
  const [revoked, setRevoked] = useState<OperatorToken>();
  return (
    <section class="sheet" aria-labelledby="people-tokens">
      <div class="page-head">
        <h2 id="people-tokens">Named tokens</h2>
        <AskButton onClick={() => onWant(NOTHING)}>Make a token</AskButton>
      </div>
      <p class="faint">A program, or a person who cannot sign in otherwise, signs in with a token of their own.</p>
      <Loading loaded={loaded}>
        {({ tokens }) =>
          tokens.length === 0 ? (
            <p>There are no named tokens yet.</p>
          ) : (
            <ul class="lined people-list" aria-labelledby="people-tokens">
              {tokens.map((token) => (
                <li key={token.tokenId}>
                  <div>
                    <b>{token.name}</b> <Badge tone={token.state === 'valid' ? 'good' : 'plain'}>{token.state}</Badge>
                    <div>{rightInWords(token)}</div>
                    <div class="faint">
                      <Dated before="used" at={token.lastUsedAt} none="never used" isAgo />, made{' '}
                      <Ago at={token.createdAt} />
                      <Dated before=", ends" at={token.expiresAt} />
                    </div>
                  </div>
                  {token.state === 'valid' && (
                    <AskButton aria-label={`Revoke ${token.name}`} onClick={() => setRevoked(token)}>
                      Revoke
                    </AskButton>
                  )}
                </li>
              ))}
            </ul>
          )
        }
      </Loading>
      {wanted && <IssueDialog wanted={wanted} onDone={loaded.again} onClose={() => onWant()} />}
      {revoked !== undefined && (
        <Confirm
          title={`Revoke ${revoked.name}?`}
          action="Revoke the token"
          isDangerous
          onConfirm={async () => {
            await ask('POST', `/operators/tokens/${revoked.tokenId}/revoke`);
            announce(`${revoked.name} is revoked`);
            loaded.again();
          }}
          onClose={() => setRevoked(undefined)}
        >
          <p>
            Within 5 s the token is invalid, and the sessions that it opened end. This cannot be undone. If somebody
            still needs one, make the new token first.
          </p>
        </Confirm>
      )}
    </section>
  );
}

function IssueDialog({ wanted, onDone, onClose }: { wanted: Draft; onDone: () => void; onClose: () => void }) {
  const [name, setName] = useState('');
  const [days, setDays] = useState('90');
  const [draft, setDraft] = useState(wanted);
  const right = rightOf(draft);
  const issue = async () => {
    const { token } = await ask<{ token: string }>('POST', '/operators/tokens', {
      body: { name: name.trim(), ...right, expiresAt: endAfter(days) },
    });
    announce('The token is made');
    onDone();
    return (
      <>
        <p>This token is shown only once. Copy it now.</p>
        <Copyable label="the token" text={token} />
      </>
    );
  };
  return (
    <Confirm title="Make a named token" action="Make the token" onConfirm={issue} onClose={onClose}>
      <p>The token is shown once, after you make it.</p>
      <Text
        id="people-name"
        label="Name, shown in the audit"
        isRequired
        maxLength={100}
        value={name}
        onWrite={setName}
      />
      <RightFields draft={draft} onChange={setDraft} />
      <Expires id="people-expires" days={days} onChoose={setDays} />
    </Confirm>
  );
}
