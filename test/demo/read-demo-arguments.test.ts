import { expect, it } from 'vitest';
import { readDemoArguments } from '../../demo/read-demo-arguments.ts';

it.each([
  [['--nonsense'], "Unknown option '--nonsense'"],
  [['--json'], '--json needs --once'],
  [['--watch', '--once'], 'there is no --once'],
  [['--platform', './map-order.ts'], '--platform needs an --order'],
  [['--order', '4711'], '--order needs --platform'],
  [['--watch', '--outage'], 'there is no --outage'],
  [['--cancel', '--pos', 'toast'], '--cancel is for the sample platform and the POS standard'],
  [['--outage'], '--outage stops the embedded Postgres', { DATABASE_URL: 'postgres://x@127.0.0.1:1/x' }],
  [['--pos', 'acme'], '--pos must be a path or one of standard'],
  [['later'], "argument 'later'"],
])('%j is refused', (args, message, env: Record<string, string> = {}) => {
  expect(() => readDemoArguments(args, env)).toThrow(message);
});
