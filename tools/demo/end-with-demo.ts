// Loaded into the service before its own code. A killed demo cannot stop the service. But the IPC channel between them
// closes, and the service then stops itself.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
