// Ends at once on a Node that is too old. Entry points import this first, and the rest after it: an old Node fails while
// it links the rest. The npm scripts load it with `-r`, where the oldest Node reads it as plain JavaScript, so it has no
// types, imports or exports.

/** The first version with `randomUUIDv7`, as in `engines`. */
const OLDEST = { major: 26, minor: 1 };

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < OLDEST.major || (major === OLDEST.major && minor < OLDEST.minor)) {
  process.stderr.write(
    `Expediter needs Node ${OLDEST.major}.${OLDEST.minor} or newer, and this is ${process.versions.node}: ` +
      'see https://nodejs.org. In a checkout, "npm ci" brings one, and the scripts of npm run on it\n',
  );
  process.exit(1);
}
