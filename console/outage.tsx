import { useEffect, useRef } from 'preact/hooks';
import { ask } from './api.ts';
import { outageInWords } from './outage-in-words.ts';
import { announce } from './parts/announce.ts';
import { useLoaded } from './parts/use-loaded.ts';
import type { SpillAnswer } from './wire.ts';

/** The interval at which the service checks Postgres. */
const EVERY_MS = 2_000;

/** The banner during an outage of Postgres. Its beginning and end are announced, but not the changes of the count. */
export function Outage() {
  const { value, problem } = useLoaded((signal) => ask<SpillAnswer>('GET', '/spill', { signal }), [], EVERY_MS);
  const banner = problem === undefined ? value && outageInWords(value) : undefined;
  const wasShown = useRef(false);
  useEffect(() => {
    if (banner !== undefined) announce(banner.text);
    else if (wasShown.current) announce('The outage is over');
    wasShown.current = banner !== undefined;
  }, [banner?.tone]);
  return banner === undefined ? null : <p class={`outage ${banner.tone}`}>{banner.text}</p>;
}
