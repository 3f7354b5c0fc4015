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
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return undefined;
    const timer = setTimeout(() => setCopied(false), SAID_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);

  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    announce(`${label} copied`);
  };

  return (
    <button type="button" onClick={() => void copy()} aria-label={`Copy: ${label}`}>
      {isCopied ? 'Copied' : 'Copy'}
    </button>
  );
}
