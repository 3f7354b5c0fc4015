/** Loaded before the service: the suite is a flood itself, and every input has an answer of its own. */
import { ANSWER_LIMITS } from '../../../src/http/webhook-routes.ts';

ANSWER_LIMITS.perSecond = 1_000_000;
