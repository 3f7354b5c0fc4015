/**
 * Node options for a child with a channel to us: if we are killed, the channel closes and the child ends. Not a file:
 * its types would be stripped first, within the child's start.
 */
export const END_WITH_PARENT = ['--import', "data:text/javascript,process.once('disconnect',()=>process.exit())"];
