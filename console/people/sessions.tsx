import { useState } from 'preact/hooks';
import { AskButton } from '../parts/ask-button.tsx';
import { ask } from '../api.ts';
import { call } from '../call.ts';
import { announce } from '../parts/announce.ts';
import { Badge } from '../parts/badge.tsx';
import { Confirm } from '../parts/confirm.tsx';
import { Dated } from '../parts/dated.tsx';
import { Loading } from '../parts/loading.tsx';
import { Time } from '../parts/time.tsx';
import { useLoaded, type Loaded } from '../parts/use-loaded.ts';
import type { ActiveSession, OwnSession } from '../wire.ts';
import { browserOf } from './browser-of.ts';
import { personName } from '../../src/core/domain/describe-action.ts';

/** The operator's own sessions. */
export function OwnSessions() {
  const loaded = useLoaded((signal) => call<{ sessions: OwnSession[] }>('GET', '/console/sessions', { signal }), []);
  return (
    <>
      <h3 id="people-own">Where you are signed in</h3>
      <Sessions
        loaded={loaded}
        labelledBy="people-own"
        end={({ sessionId }) => call('DELETE', `/console/sessions/${sessionId}`)}
      />
    </>
  );
}

/** All sessions, for an admin of all locations. */
export function OthersSessions() {
  const loaded = useLoaded(
    (signal) => ask<{ sessions: ActiveSession[] }>('GET', '/operators/sessions', { signal }),
    [],
  );
  return (
    <section class="sheet" aria-labelledby="people-sessions">
      <h2 id="people-sessions">Who is signed in</h2>
      <p class="faint">Lost laptop? End its session: it is signed out within 5 s. The person can sign in again.</p>
      <Sessions
        loaded={loaded}
        labelledBy="people-sessions"
        end={({ sessionId }) => ask('POST', `/operators/sessions/${sessionId}/revoke`)}
      />
    </section>
  );
}

type Listed = ActiveSession & { current?: boolean };
type About = { loaded: Loaded<{ sessions: Listed[] }>; labelledBy: string; end: (each: Listed) => Promise<unknown> };

function Sessions({ loaded, labelledBy, end }: About) {
  const [chosen, setChosen] = useState<Listed>();
  return (
    <Loading loaded={loaded}>
      {({ sessions }) => (
        <>
          <ul class="lined people-list" aria-labelledby={labelledBy}>
            {sessions.map((each) => (
              <li key={each.sessionId}>
                <div>
                  {/* One's own sessions all have one name. */}
                  <b>{each.current === undefined ? personName(each.name) : inWords(each)}</b>{' '}
                  {each.current && <Badge tone="good">this browser</Badge>}
                  {each.current === undefined && <div>{inWords(each)}</div>}
                  <div class="faint">
                    <Dated before="last used" at={each.current ? null : each.lastSeenAt} none="in use now" isAgo />,
                    signed in <Time at={each.signedInAt} />, ends <Time at={each.expiresAt} />
                  </div>
                </div>
                {!each.current && (
                  <AskButton
                    aria-label={`End ${personName(each.name)}, ${inWords(each)}`}
                    onClick={() => setChosen(each)}
                  >
                    End
                  </AskButton>
                )}
              </li>
            ))}
          </ul>
          {chosen !== undefined && (
            <Confirm
              title={`End the session of ${personName(chosen.name)}?`}
              action="End the session"
              isDangerous
              onConfirm={async () => {
                await end(chosen);
                announce('The session has ended');
                loaded.again();
              }}
              onClose={() => setChosen(undefined)}
            >
              <p>{inWords(chosen)}. It is signed out within 5 s.</p>
            </Confirm>
          )}
        </>
      )}
    </Loading>
  );
}

function inWords({ userAgent, source }: Listed): string {
  return `${browserOf(userAgent)}${source === null ? '' : ` from ${source}`}`;
}
