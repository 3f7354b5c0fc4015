import { useState } from 'preact/hooks';
import { AskButton } from '../parts/ask-button.tsx';
import { ask, query } from '../api.ts';
import { Acts } from '../audit/actions.tsx';
import { announce } from '../parts/announce.ts';
import { Choice, Text } from '../parts/form.tsx';
import { Confirm } from '../parts/confirm.tsx';
import { closeDialog } from '../parts/dialog.tsx';
import { Loading } from '../parts/loading.tsx';
import { Ago } from '../parts/time.tsx';
import { useLoaded } from '../parts/use-loaded.ts';
import { refusedFields, type FieldProblems } from '../set-up/field-problems.ts';
import { hasOidc } from '../sign-in.ts';
import type { ListedActions, OperatorGrant } from '../wire.ts';
import { RightFields } from './right-fields.tsx';
import { eachOnce, rightInWords, whose } from './right-in-words.ts';
import { NOTHING, rightOf, type Draft } from './right-of.ts';

const useIsInVain = (): boolean => useLoaded(hasOidc, []).value === false;
const IN_VAIN =
  'Nobody can sign in by address or group here, because sign-in by OIDC is not configured. Until then, these roles do nothing.';

const TAKEN = { action: 'take roles', outcome: 'done', limit: 5 };

type Giving = { onToken: (draft: Draft) => void };

/** The roles of people who sign in by OIDC. @param onToken asks for a named token with the same roles */
export function GivenRoles({ onToken }: Giving) {
  const isInVain = useIsInVain();
  const loaded = useLoaded((signal) => ask<{ grants: OperatorGrant[] }>('GET', '/operators/grants', { signal }), []);
  const lost = useLoaded((signal) => ask<ListedActions>('GET', `/audit${query(TAKEN)}`, { signal }), []);
  const [isGiving, setGiving] = useState(false);
  const [taken, setTaken] = useState<ReturnType<typeof eachOnce>[number]>();
  return (
    <section class="sheet" aria-labelledby="people-roles">
      <div class="page-head">
        <h2 id="people-roles">Roles</h2>
        <AskButton onClick={() => setGiving(true)}>Give roles</AskButton>
      </div>
      <p class="faint">
        A person has the roles of their address and groups. {!isInVain && 'Changes take effect within 5 s.'}
      </p>
      <Loading loaded={loaded}>
        {({ grants }) =>
          grants.length === 0 ? (
            <p>No roles were given yet.</p>
          ) : (
            <ul class="lined people-list" aria-labelledby="people-roles">
              {isInVain && <li class="problem">{IN_VAIN} Make a named token for each of these people.</li>}
              {eachOnce(grants).map((grant) => (
                <li key={grant.grantId}>
                  <div>
                    <b>{whose(grant)}</b>
                    <div>{rightInWords(grant)}</div>
                    <div class="faint">
                      given <Ago at={grant.createdAt} />
                    </div>
                  </div>
                  <AskButton
                    aria-label={`Take away from ${whose(grant)}: ${rightInWords(grant)}`}
                    onClick={() => setTaken(grant)}
                  >
                    Take away
                  </AskButton>
                </li>
              ))}
            </ul>
          )
        }
      </Loading>
      {lost.value !== undefined && lost.value.actions.length > 0 && (
        <>
          <h3>Taken away last</h3>
          <Acts actions={lost.value.actions} label="What was taken away, and by whom" />
        </>
      )}
      {isGiving && <GiveDialog onToken={onToken} onDone={loaded.again} onClose={() => setGiving(false)} />}
      {taken !== undefined && (
        <Confirm
          title={`Take these roles away from ${whose(taken)}?`}
          action="Take the roles away"
          isDangerous
          onConfirm={async () => {
            for (const id of taken.grantIds) await ask('POST', `/operators/grants/${id}/remove`);
            announce('The roles are taken');
            loaded.again();
            lost.again();
          }}
          onClose={() => setTaken(undefined)}
        >
          <p>{rightInWords(taken)}. Sessions continue with the remaining roles. If no role remains, they end.</p>
        </Confirm>
      )}
    </section>
  );
}

function GiveDialog({ onToken, onDone, onClose }: Giving & { onDone: () => void; onClose: () => void }) {
  const isInVain = useIsInVain();
  const [to, setTo] = useState<'email' | 'group'>('email');
  const [name, setName] = useState('');
  const [draft, setDraft] = useState(NOTHING);
  const right = rightOf(draft);
  const [refused, setRefused] = useState<FieldProblems>({});
  const give = async (): Promise<false | void> => {
    try {
      await ask('POST', '/operators/grants', { body: { [to]: name.trim(), ...right } });
    } catch (error) {
      setRefused(refusedFields(error, [to]));
      return false;
    }
    announce('The roles are given');
    return onDone();
  };
  return (
    <Confirm title="Give roles" action="Give the roles" onConfirm={give} onClose={onClose}>
      {isInVain && (
        <div class="problem">
          <p>{IN_VAIN}</p>
          <AskButton
            onClick={(event) => {
              closeDialog(event);
              onToken(draft);
            }}
          >
            Make a named token instead
          </AskButton>
        </div>
      )}
      <Choice
        id="people-to"
        label="To"
        value={to}
        options={Object.entries({ email: 'a person, by address', group: 'all members of a group' })}
        onChoose={(to) => setTo(to === 'group' ? 'group' : 'email')}
      />
      <Text
        id="people-name"
        label={to === 'email' ? 'E-mail address' : 'Group, as named by the issuer'}
        isRequired
        refused={refused[to]}
        value={name}
        onWrite={(text) => {
          setName(text);
          setRefused({});
        }}
      />
      <RightFields draft={draft} onChange={setDraft} />
    </Confirm>
  );
}
