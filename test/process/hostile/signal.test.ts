import { signalInputs } from '../../../world/hostile/inputs-by-endpoint.ts';
import { withstand } from './withstand.ts';

withstand('/signal', signalInputs());
