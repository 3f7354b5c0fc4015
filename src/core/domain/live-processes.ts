/** The number of processes that run, this one included, as far as this process knows. */
export const liveProcesses = { count: 1 };
