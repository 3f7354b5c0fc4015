import { useEffect, useState } from 'preact/hooks';
import { CloseDialog, Dialog } from './parts/dialog.tsx';
import { Tick } from './parts/form.tsx';
import { storedChoice } from './parts/stored-choice.ts';

/** Everything that `j` and `k` move between. Tickets have their own arrow keys. */
const STOPS = 'main a.need, main :is(.linked, .lines) tbody th a, main [data-ticket][tabindex="0"]';

/** Whether single keys act. People who dictate, or press keys by accident, can turn this off (WCAG 2.1.4). */
const areOn = storedChoice('expediter.keys', true);

const HELP = [
  ['/ or Ctrl K', 'Search'],
  ['j, k', 'Next, previous'],
  ['Arrow keys', 'Move between tickets and columns'],
  ['Enter', 'Open'],
  ['?', 'This list'],
] as const;

/** The keys of the console. @param onSearch opens the search */
export function Keys({ onSearch }: { onSearch: () => void }) {
  const [isHelp, setHelp] = useState(false);
  useEffect(() => {
    const act = (event: KeyboardEvent): void => {
      if (document.querySelector('dialog[open]') !== null) return;
      const isChord = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
      if (isChord && event.key.toLowerCase() === 'k') onSearch();
      else if (event.ctrlKey || event.metaKey || event.altKey || !areOn.value || isTyping(event.target)) return;
      else if (event.key === '/') onSearch();
      else if (event.key === '?') setHelp(true);
      else if (event.key === 'j') step(1);
      else if (event.key === 'k') step(-1);
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', act);
    return () => removeEventListener('keydown', act);
  }, [onSearch]);
  return isHelp ? <KeysDialog onClose={() => setHelp(false)} /> : null;
}

function KeysDialog({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl>
        {HELP.map(([keys, does]) => (
          <>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{does}</dd>
          </>
        ))}
      </dl>
      <Tick isOn={areOn.value} onTick={(isOn) => areOn.store(isOn)}>
        Single keys act. Ctrl K always does.
      </Tick>
      <CloseDialog />
    </Dialog>
  );
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    target.closest('input:not([type=checkbox], [type=radio]), select, textarea, [contenteditable]') !== null
  );
}

/** Moves the focus to the next or previous line of the page. Within a column, the column itself moves it. */
function step(by: 1 | -1): void {
  const before = document.activeElement;
  if (before?.matches('[data-ticket]')) {
    before.dispatchEvent(new KeyboardEvent('keydown', { key: by > 0 ? 'ArrowDown' : 'ArrowUp', bubbles: true }));
    return;
  }
  const stops = [...document.querySelectorAll<HTMLElement>(STOPS)];
  const at = before === null ? -1 : stops.indexOf(before as HTMLElement);
  stops[at === -1 && by < 0 ? stops.length - 1 : at + by]?.focus();
}
