/**
 * For the command line of a Node child that has a channel to us: a harness that is killed cannot stop it any more, but
 * the channel closes all the same. Not a file: that would have its types removed first, and count as the child's start.
 */
export const END_WITH_PARENT = ['--import', "data:text/javascript,process.once('disconnect',()=>process.exit())"];
