import { z } from 'zod';
import { GiveUp } from './errors.ts';
import { Id } from './order.ts';
import { ReasonCode } from './reason-code.ts';

/** Why a POS refuses, for programs. */
export type RefusedFor = { reasonCode?: ReasonCode | undefined; itemIds?: readonly string[] | undefined };

const ItemIds = z.array(Id).max(100);

/** Reads what a refusal says to programs. A provider's package may put anything there. */
export function refusedFor(error: unknown): RefusedFor {
  if (!(error instanceof GiveUp)) return {};
  return { reasonCode: ReasonCode.safeParse(error.reasonCode).data, itemIds: ItemIds.safeParse(error.itemIds).data };
}
