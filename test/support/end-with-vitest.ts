// Loaded into each worker before Vitest's own code. If Vitest ends without it, the worker would stay for ever.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
