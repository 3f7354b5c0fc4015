import { useState } from 'preact/hooks';
import { AskButton } from './ask-button.tsx';
import { ask } from '../api.ts';
import { hasOidc, session } from '../sign-in.ts';
import { announce } from './announce.ts';
import './case.css';
import { Choice, Form, Text } from './form.tsx';
import { Confirm, type Meanwhile } from './confirm.tsx';
import { doneSince, lastOf } from './done-since.ts';
import { Loading } from './loading.tsx';
import { Ago, Time } from './time.tsx';
import { useLoaded } from './use-loaded.ts';
import type { Care, RecordedAction } from '../wire.ts';
import { personName } from '../../src/core/domain/describe-action.ts';

type About = { path: string; reload: () => void };
type Shown = Care & { actions: readonly RecordedAction[] };
type AboutCase = About & { care: Shown; isNeeded: boolean; mayAct: boolean; isSilent?: boolean };
type Asking = { path: string; onClose: () => void; meanwhile: Meanwhile };
type Dialog = 'hand over' | 'close' | 'snooze';

const SNOOZES = Object.entries({ 30: '30 minutes', 120: '2 hours', 480: '8 hours' });

const LONG = { lines: 2, maxLength: 1_000 };
const DONE = 'What was done, without member data (optional)';

/** What a dialog of a case does, by the codes of actions. */
const MOVED = ['take case', 'close case'];
const SNOOZED = ['snooze', 'close case'];

const myName = (): string | undefined => (session.value.state === 'in' ? session.value.name : undefined);

/** Who has a case, and who gave it to them. */
export function Holder({ holder, takenAt, givenBy, what }: NonNullable<Care['case']> & { what: string }) {
  const isMine = holder === myName();
  return (
    <>
      <b>{isMine ? `You have ${what}` : `${personName(holder)} has ${what}`}</b>
      {givenBy && (
        <>
          , given {isMine && 'to you '}by {personName(givenBy)}, <Ago at={takenAt} />
        </>
      )}
    </>
  );
}

/**
 * Who takes care of an order or a location, and what people wrote about it.
 * @param about.path its path in the operator API, such as `/orders/x`
 * @param about.isNeeded false if nothing is wrong with it, or its case is closed and nothing came later
 * @param about.isSilent true if it is on the board because its POS is silent or does not answer
 */
export function CaseAndNotes({ path, care, reload, ...about }: AboutCase) {
  const { isNeeded, mayAct, isSilent = false } = about;
  const { case: taken, snoozedUntil, notes } = care;
  const [dialog, setDialog] = useState<Dialog>();
  const [problem, setProblem] = useState<string>();
  const isMine = taken !== null && taken.holder === myName();
  const isOpen = taken !== null || isNeeded;
  const isSnoozed = snoozedUntil !== null && Date.parse(snoozedUntil) > Date.now();
  const shared = {
    path,
    meanwhile: async (signal?: AbortSignal) =>
      doneSince(care, await ask<Shown>('GET', path, { signal }), dialog === 'snooze' ? SNOOZED : MOVED),
    onClose() {
      setDialog(undefined);
      reload();
    },
  };

  const act = async (done: string, ...request: Parameters<typeof ask>): Promise<boolean> => {
    setProblem(undefined);
    try {
      await ask(...request);
      announce(done);
      reload();
      return true;
    } catch (error) {
      setProblem((error as Error).message);
      return false;
    }
  };

  const called = async (): Promise<void> => {
    const isNoted = await act('Noted', 'POST', `${path}/notes`, { body: { text: 'I called the restaurant.' } });
    if (isNoted) await act('The alarm is hidden', 'POST', `${path}/snooze`, { body: { minutes: 30 } });
  };

  return (
    <section class="sheet case" aria-labelledby="case">
      <h2 id="case">Case and notes</h2>
      {taken !== null && (
        <p>
          <Holder {...taken} what="this one" />
          {!taken.givenBy && (
            <>
              , since <Time at={taken.takenAt} />
            </>
          )}
          .
        </p>
      )}
      {isSnoozed && (
        <p>
          Hidden until <Time at={snoozedUntil} />.
        </p>
      )}
      {taken === null && !isSnoozed && (
        <p>
          {isNeeded
            ? 'Nobody has this one'
            : (lastOf(care, ({ action }) => action === 'close case') ?? 'No case is open')}
          .
        </p>
      )}
      {mayAct && (
        <div class="buttons">
          {isSilent && !isSnoozed && (
            <button type="button" onClick={() => void called()}>
              I called: hide this alarm for 30 minutes
            </button>
          )}
          {!isMine && (
            <button type="button" onClick={() => void act('You have this one', 'PUT', `${path}/case`, { body: {} })}>
              {taken === null ? 'I have this one' : `Take over from ${personName(taken.holder)}`}
            </button>
          )}
          {isOpen && <AskButton onClick={() => setDialog('hand over')}>Hand over</AskButton>}
          {isOpen && <AskButton onClick={() => setDialog('close')}>Close the case</AskButton>}
          {isSnoozed ? (
            <button
              type="button"
              onClick={() => void act('The alarm is shown', 'POST', `${path}/snooze`, { body: { minutes: 0 } })}
            >
              Show the alarm
            </button>
          ) : (
            (isNeeded || isSilent) && <AskButton onClick={() => setDialog('snooze')}>Snooze</AskButton>
          )}
        </div>
      )}
      <p class="problem" role="alert">
        {problem}
      </p>
      {notes.length > 0 && (
        <ul class="lined case-notes" aria-label="Notes">
          {notes.map(({ at, by, text }) => (
            <li key={at + by}>
              {text}
              <div class="faint">
                {personName(by)}, <Ago at={at} />
              </div>
            </li>
          ))}
        </ul>
      )}
      {mayAct && <NoteForm path={path} reload={reload} />}
      {dialog === 'hand over' && <HandOver {...shared} />}
      {dialog === 'close' && <Close {...shared} />}
      {dialog === 'snooze' && <Snooze {...shared} />}
    </section>
  );
}

function NoteForm({ path, reload }: About) {
  const [text, setText] = useState('');
  const add = async (): Promise<void> => {
    await ask('POST', `${path}/notes`, { body: { text: text.trim() } });
    setText('');
    announce('The note is added');
    reload();
  };
  return (
    <Form action="Add the note" isReady={text.trim() !== ''} onSubmit={add}>
      <Text id="case-note" label="Add a note, without member data" {...LONG} value={text} onWrite={setText} />
    </Form>
  );
}

function HandOver({ path, ...about }: Asking) {
  const [to, setTo] = useState('');
  const loaded = useLoaded((signal) => ask<{ people: string[] }>('GET', `${path}/case/people`, { signal }), [path]);
  const byAddress = useLoaded(hasOidc, []);
  const names = (loaded.value?.people ?? []).filter((name) => name !== myName());
  const sees =
    byAddress.value === false && to.includes('@')
      ? 'Nobody can sign in by address here, so they will not see it.'
      : 'They see that you gave it to them when they sign in.';
  const handOver = async (): Promise<void> => {
    await ask('PUT', `${path}/case`, { body: { to } });
    announce(`${to} has this one`);
  };
  return (
    <Confirm
      {...about}
      title="Hand over this case"
      action="Hand over"
      isReady={loaded.value !== undefined}
      onConfirm={handOver}
    >
      <Loading loaded={loaded}>
        {() => (
          <Choice
            id="case-to"
            label="To whom"
            hint={
              names.length === 0 ? (
                <>
                  Nobody else may take cases here yet. Give them the role operator on the page{' '}
                  <a href="/console/people">People</a>.
                </>
              ) : (
                `A person with the role operator here. ${sees}`
              )
            }
            isRequired
            options={[['', 'Choose …'], ...names.map((name) => [name, name] as const)]}
            value={to}
            onChoose={setTo}
          />
        )}
      </Loading>
    </Confirm>
  );
}

function Close({ path, ...about }: Asking) {
  const [note, setNote] = useState('');
  const close = async (): Promise<void> => {
    await ask('POST', `${path}/case/close`, { body: note.trim() === '' ? {} : { note: note.trim() } });
    announce('The case is closed');
  };
  return (
    <Confirm {...about} title="Close this case?" action="Close the case" onConfirm={close}>
      <p>
        {path.startsWith('/locations/')
          ? 'Nobody takes care of it then. The problem stays on the board until it is fixed.'
          : 'A failure, a conflict or a change then leaves the board. A later problem appears again.'}
      </p>
      <Text id="case-close" label={DONE} {...LONG} value={note} onWrite={setNote} />
    </Confirm>
  );
}

function Snooze({ path, ...about }: Asking) {
  const [minutes, setMinutes] = useState('30');
  const snooze = async (): Promise<void> => {
    await ask('POST', `${path}/snooze`, { body: { minutes: Number(minutes) } });
    announce('The alarm is hidden');
  };
  return (
    <Confirm {...about} title="Snooze this?" action="Snooze" onConfirm={snooze}>
      <p>
        {path.startsWith('/locations/')
          ? 'All that the board says of this location now is hidden from everybody for this time, except doubts and cancellations by phone.'
          : 'Its alarm is hidden from everybody for this time.'}{' '}
        A later problem appears. Nothing else changes.
      </p>
      <Choice id="case-minutes" label="For" value={minutes} options={SNOOZES} onChoose={setMinutes} />
    </Confirm>
  );
}
