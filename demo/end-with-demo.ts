// Loaded into the service before its own code: a demo that is killed cannot stop it any more, but the channel
// between the two closes all the same.
process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
