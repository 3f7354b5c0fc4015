import { forwardInputs } from '../../../world/hostile/inputs-by-endpoint.ts';
import { withstand } from './withstand.ts';

withstand('/pubsub/push and /follow', forwardInputs());
