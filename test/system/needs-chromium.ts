import { existsSync } from 'node:fs';
import { needsTool } from './needs-tool.ts';

/**
 * Where the browser is: what `CHROMIUM` names, else Debian's.
 * @throws when there is none
 */
export function needsChromium(): string {
  const named = process.env['CHROMIUM'];
  if (!named) return needsTool('chromium', 'chromium');
  if (!existsSync(named)) throw new Error(`CHROMIUM names "${named}", and there is no such file`);
  return named;
}
