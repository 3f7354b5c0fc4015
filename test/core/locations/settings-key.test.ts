import { CompactEncrypt } from 'jose';
import { expect, it } from 'vitest';
import { parseSettingsKeys, SealedElsewhere, unseal } from '../../../src/core/locations/settings-key.ts';

it('a text that was encrypted without the name of a row is not decrypted in a row', async () => {
  const keys = parseSettingsKeys(`test:${Buffer.alloc(32, 9).toString('base64')}`);
  const text = await new CompactEncrypt(Buffer.from('{}'))
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: 'test' })
    .encrypt(keys.get('test') ?? Buffer.alloc(0));
  await expect(unseal(keys, text, 'locations/club-1')).rejects.toThrow(
    new SealedElsewhere('it was encrypted for no row, but is in locations/club-1'),
  );
});
