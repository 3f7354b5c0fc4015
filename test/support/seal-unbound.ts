import { CompactEncrypt } from 'jose';
import { parseSettingsKeys } from '../../src/core/locations/settings-key.ts';

/** Seals a value as versions before 0.3 did: it says of no row that it belongs there. @param settingsKey `id:base64` */
export function sealUnbound(settingsKey: string, value: unknown): Promise<string> {
  const [[kid, key] = ['', Buffer.alloc(0)]] = parseSettingsKeys(settingsKey);
  return new CompactEncrypt(Buffer.from(JSON.stringify(value)))
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid })
    .encrypt(key);
}
