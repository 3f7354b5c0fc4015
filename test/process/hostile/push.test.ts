import { forwardInputs } from './inputs-by-endpoint.ts';
import { withstand } from './withstand.ts';

withstand('/pubsub/push and /follow', forwardInputs());
