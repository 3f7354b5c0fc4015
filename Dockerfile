# syntax=docker/dockerfile:1
FROM node:26-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY src src
RUN npm run build && npm prune --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM node:26-bookworm-slim
ENV NODE_ENV=production
# With the memory of a large machine in sight, V8 and the allocator would keep two to three times what the service needs.
ENV NODE_OPTIONS="--max-old-space-size=512 --max-semi-space-size=8"
ENV MALLOC_ARENA_MAX=2
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY migrations migrations
# A provider that is put into node_modules imports `expediter/provider`: this very copy.
RUN ln -s .. node_modules/expediter
RUN ln -s /app/dist/cli.js /usr/local/bin/expediter && chmod +x dist/cli.js
USER node
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=2s --start-period=5s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 8080}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# As process 1, so that SIGTERM reaches it.
CMD ["node", "--enable-source-maps", "dist/main.js"]
