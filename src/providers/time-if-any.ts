import { z } from 'zod';
import { StatusEvent } from '../core/domain/order.ts';

/**
 * A time of an event. An offset without a colon (`+0000`) is read as well: two vendors write it so. A time that cannot be
 * stored is left out, and the event kept.
 */
export const timeIfAny = z
  .preprocess(
    (time) => (typeof time === 'string' ? time.replace(/([+-]\d\d)(\d\d)$/, '$1:$2') : time),
    StatusEvent.shape.occurredAt,
  )
  .catch(undefined);
