/** `npm run simulate`: runs seeds in virtual time. */
import { parseArgs } from 'node:util';
import { installHooks } from './hooks.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '1' },
    orders: { type: 'string', default: '20' },
    times: { type: 'string', default: '1' },
    without: { type: 'string' },
    url: { type: 'string' },
    lines: { type: 'boolean', default: false },
    'until-found': { type: 'boolean', default: false },
    shrink: { type: 'boolean', default: false },
    'no-faults': { type: 'boolean', default: false },
  },
});
installHooks(values.without);
const { simulate } = await import('./simulate-seeds.ts');
process.exitCode = await simulate({
  first: Number(values.seed),
  seeds: Number(values.seeds),
  orders: Number(values.orders),
  times: Number(values.times),
  url: values.url,
  lines: values.lines,
  untilFound: values['until-found'],
  shrinks: values.shrink,
  withFaults: !values['no-faults'],
  say: (line) => void process.stdout.write(`${line}\n`),
});
