import { useEffect, useState } from 'preact/hooks';
import { announce } from './announce.ts';

const SAID_MS = 2_000;

/** A command or an address, ready to be copied. */
export function Copyable({ text, label }: { text: string; label: string }) {
  return (
    <div class="copyable">
      <pre>{text}</pre>
      <CopyButton text={text} label={label} />
    </div>
  );
}

/** The button alone, for what is shown in a way of its own. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const [result, setResult] = useState<'Copied' | 'Not copied: select it'>();
  useEffect(() => {
    if (result === undefined) return undefined;
    const timer = setTimeout(() => setResult(undefined), SAID_MS);
    return () => clearTimeout(timer);
  }, [result]);

  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // A page that came by plain http has no clipboard, and a browser may refuse it to any.
      setResult('Not copied: select it');
      announce(`${label} could not be copied: select it and copy it by hand`);
      return;
    }
    setResult('Copied');
    announce(`${label} copied`);
  };

  return (
    <button type="button" onClick={() => void copy()} aria-label={`Copy: ${label}`}>
      {result ?? 'Copy'}
    </button>
  );
}
