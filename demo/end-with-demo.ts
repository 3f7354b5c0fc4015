// Loaded into the service before its own code. A demo that is killed cannot stop the service, but the channel between
// them closes all the same.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
