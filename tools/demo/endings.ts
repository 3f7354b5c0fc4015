/** The parts that must be ended with the demo, even if it failed while it started them. */
export type Endings = {
  add(name: string, end: () => Promise<unknown>): void;
  /** Ends all parts, the last one first, even if some fail. @throws Error that names the parts that failed */
  run(): Promise<void>;
};

export function endings(): Endings {
  const all: { name: string; end: () => Promise<unknown> }[] = [];
  return {
    add: (name, end) => void all.push({ name, end }),
    async run() {
      const failures: string[] = [];
      for (const { name, end } of all.splice(0).toReversed()) {
        await end().catch((error: Error) => failures.push(`${name}: ${error.message}`));
      }
      if (failures.length > 0) throw new Error(`could not end ${failures.join('; ')}`);
    },
  };
}
