import type { ComponentChildren } from 'preact';
import './lists.css';
import { explainFailure, inPlainWords } from '../../src/core/domain/explain-failure.ts';

/** Commands, variables of the environment, files and scopes, which people copy. */
const COPIED =
  /(\bexpediter [a-z-]+(?: (?:check|connect|issue|show|put))?|\b[A-Z]{2,}(?:_[A-Z]+)+\b|\bsettings\.json\b|\b[a-z]+\[[\w.,]+\])/;

/** A sentence of the service, with settings as the form labels them. */
export function Said({ text }: { text: string }) {
  return <WithCode text={inPlainWords(text)} />;
}

/** A text whose parts that people copy are code. */
export function WithCode({ text }: { text: string }) {
  // Every second part is what `COPIED` found.
  const parts = text.split(COPIED);
  return <>{parts.map((part, nth) => (nth % 2 === 0 ? part : <code key={part}>{part}</code>))}</>;
}

/** A stored problem as a sentence, with its codes for a technician. */
export function Problem({ text }: { text: string }) {
  const { says, details } = explainFailure(text);
  return (
    <>
      <Said text={says} />
      {details !== null && <Details>{details}</Details>}
    </>
  );
}

/** What only a technician needs, such as codes and ids. */
export function Details({ children }: { children: ComponentChildren }) {
  return (
    <details class="said-details">
      <summary>Details</summary>
      <code>{children}</code>
    </details>
  );
}
