import { forwardInputs } from './inputs-by-door.ts';
import { withstand } from './withstand.ts';

withstand('/pubsub/push and /follow', forwardInputs());
