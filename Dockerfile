# By its digest, which Renovate moves: a tag may be another image tomorrow. Where images come from a mirror, --build-arg.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6
FROM $NODE_IMAGE AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json ./
COPY src src
# What makes the console; of these only the result goes on, into dist/console.
COPY tools/build tools/build
COPY console console
# Half of what the packages weigh is for editors and debuggers: Node runs no TypeScript below node_modules.
RUN npm run build && npm prune --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund && \
  find node_modules -type f \( -name '*.map' -o -name '*.ts' -o -name '*.mts' -o -name '*.cts' \) -delete

FROM $NODE_IMAGE
ARG NODE_IMAGE
ARG VERSION=1.0.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Expediter" \
  org.opencontainers.image.description="Sends every order to its POS once, or a person is told, and brings every POS status back to the member, durably and live" \
  org.opencontainers.image.licenses="Apache-2.0" \
  org.opencontainers.image.version="$VERSION" \
  org.opencontainers.image.revision="$REVISION" \
  org.opencontainers.image.base.name="docker.io/library/$NODE_IMAGE"
ENV NODE_ENV=production
# With the memory of a large machine in sight, V8 would keep twice what the service needs; and V8's four threads take the
# processor from the one that serves, where there are only two. 0: one less than there are.
ENV NODE_OPTIONS="--max-old-space-size=512 --max-semi-space-size=16 --v8-pool-size=0"
# Buffers of all sizes come and go: Debian's own allocator keeps 40 MB more of what was given back. And what installs
# packages has nothing to do here, and would be at hand for whoever gets in.
RUN apt-get update && apt-get install -y --no-install-recommends libjemalloc2=5.3.0-1 && \
  apt-get clean && rm -rf /var/lib/apt/lists/* && \
  rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack \
  /usr/local/bin/yarn /usr/local/bin/yarnpkg /opt/yarn-*
ENV LD_PRELOAD=libjemalloc.so.2
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY migrations migrations
RUN chmod +x dist/cli.js && ln -s /app/dist/cli.js /usr/local/bin/expediter
# What a start compiles is kept by user and options. This start has no environment and is refused, once all is loaded: first
# every file of the bundle, because a start loads some of them later, then the two that start something.
ENV NODE_COMPILE_CACHE=/app/compile-cache
RUN install -d -o 1000 compile-cache && ! setpriv --reuid=1000 node --enable-source-maps \
  $(ls dist/*-????????.js | grep -v /serve- | sed 's|^|--import ./|') dist/main.js 2> /dev/null && \
  chown -R 0:0 compile-cache && chmod -R a+rX compile-cache
# node: as a number, so that Kubernetes can tell that it is not root. It writes nowhere; a read-only root is fine.
USER 1000:1000
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=2s --start-period=5s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 8080}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# As process 1, so that SIGTERM reaches it.
CMD ["node", "--enable-source-maps", "dist/main.js"]
