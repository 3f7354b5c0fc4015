import { useEffect, useRef } from 'preact/hooks';
import { ask } from './api.ts';
import { outageInWords } from './outage-in-words.ts';
import { announce } from './parts/announce.ts';
import { useLoaded } from './parts/use-loaded.ts';
import type { SpillAnswer } from './wire.ts';

/** As often as the service looks at Postgres. */
const EVERY_MS = 2_000;

/** The banner of an outage of Postgres, above every page. Its beginning and end are announced, not each count. */
export function Outage() {
  const { value, problem } = useLoaded((signal) => ask<SpillAnswer>('GET', '/spill', { signal }), [], EVERY_MS);
  const said = problem === undefined ? value && outageInWords(value) : undefined;
  const wasSaid = useRef(false);
  useEffect(() => {
    if (said !== undefined) announce(said.text);
    else if (wasSaid.current) announce('The outage is over');
    wasSaid.current = said !== undefined;
  }, [said?.tone]);
  return said === undefined ? null : <p class={`outage ${said.tone}`}>{said.text}</p>;
}
