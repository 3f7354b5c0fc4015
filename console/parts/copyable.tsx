import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { announce } from './announce.ts';

const SHOWN_MS = 2_000;

export function Copyable({ text, label }: { text: string; label: string }) {
  return (
    <div class="copyable">
      <pre>{text}</pre>
      <CopyButton text={text} label={label} />
    </div>
  );
}

type AboutCopyButton = { text: string; label: string; shows?: ComponentChildren };

/** Only the button, for a text that is shown elsewhere. */
export function CopyButton({ text, label, shows = 'Copy' }: AboutCopyButton) {
  const [result, setResult] = useState<'Copied' | 'Not copied: select the text'>();
  useEffect(() => {
    if (result === undefined) return undefined;
    const timer = setTimeout(() => setResult(undefined), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [result]);

  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // A page by plain http has no clipboard, and a browser may deny it to any page.
      setResult('Not copied: select the text');
      announce(`${label} could not be copied. Select the text and copy it by hand`);
      return;
    }
    setResult('Copied');
    announce(`${label} copied`);
  };

  return (
    <button type="button" onClick={() => void copy()} aria-label={`Copy: ${label}`}>
      {result ?? shows}
    </button>
  );
}
