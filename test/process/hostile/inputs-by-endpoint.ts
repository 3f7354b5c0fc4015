import { addressInputs } from './address-inputs.ts';
import { bodyInputs } from './body-inputs.ts';
import { FORWARD_ENDPOINT, RETURN_ENDPOINT } from './endpoint.ts';
import { followInputs } from './follow-inputs.ts';
import { headInputs } from './head-inputs.ts';
import type { HostileInput } from './hostile-input.ts';
import { payloadInputs } from './payload-inputs.ts';
import { pushInputs } from './push-inputs.ts';
import { pushTokenInputs } from './push-token-inputs.ts';
import { signatureInputs } from './signature-inputs.ts';

export function webhookInputs(): HostileInput[] {
  return [
    ...bodyInputs(RETURN_ENDPOINT),
    ...headInputs(RETURN_ENDPOINT),
    ...addressInputs(),
    ...signatureInputs(),
    ...payloadInputs(),
  ];
}

export function forwardInputs(): HostileInput[] {
  return [
    ...bodyInputs(FORWARD_ENDPOINT),
    ...headInputs(FORWARD_ENDPOINT),
    ...pushInputs(),
    ...pushTokenInputs(),
    ...followInputs(),
  ];
}

/** Inputs by their class, in the order of their first. */
export function byKind(inputs: readonly HostileInput[]): [kind: string, inputs: HostileInput[]][] {
  return [...Map.groupBy(inputs, (input) => input.kind)];
}
