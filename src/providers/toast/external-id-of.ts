import type { Settings } from './payloads.ts';

/** The id `{authority-name}:{identifier}`: https://doc.toasttab.com/doc/devguide/portalToastIdentifiers.html */
export function externalIdOf(serviceOrderId: string, { namingAuthority }: Settings): string {
  return namingAuthority === undefined ? serviceOrderId : `${namingAuthority}:${serviceOrderId}`;
}
