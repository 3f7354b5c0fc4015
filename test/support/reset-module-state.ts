import { liveProcesses } from '../../src/core/domain/live-processes.ts';

// Files share a worker, and a server of two processes counts them there. A limit of a POS would be halved in a later file.
liveProcesses.count = 1;
