import { expect, it } from 'vitest';
import { readDemoArguments } from '../../../tools/demo/read-demo-arguments.ts';

it.each([
  [['--nonsense'], "Unknown option '--nonsense'"],
  [['--json'], '--json needs --once'],
  [['--watch', '--once'], '--watch runs until Ctrl-C and cannot be used with --once'],
  [['--platform', './map-order.ts'], '--platform needs at least one --order'],
  [['--order', '4711'], '--order needs --platform'],
  [['--watch', '--outage'], '--watch places no order and cannot be used with'],
  [['--cancel', '--pos', 'toast'], '--cancel requires the sample platform and the POS standard'],
  [['--outage'], '--outage stops the embedded Postgres', { DATABASE_URL: 'postgres://x@127.0.0.1:1/x' }],
  [
    ['--without-google'],
    'STATUS_WEBHOOK_URL needs STATUS_WEBHOOK_SECRET',
    { STATUS_WEBHOOK_URL: 'http://127.0.0.1:1/' },
  ],
  [['--ports', 'http'], '--ports needs a port, such as 4100'],
  [['--ports', '65530'], '--ports needs a port, such as 4100'],
  [['--ports', '80'], '--ports needs a port, such as 4100'],
  [['--pos', 'acme'], '--pos must be a path or one of standard'],
  [['later'], "argument 'later'"],
])('%j is refused with: %s', (args, message, env: Record<string, string> = {}) => {
  expect(() => readDemoArguments(args, env)).toThrow(message);
});
