# syntax=docker/dockerfile:1
# The image of all roles, for amd64 and arm64: `docker buildx build --platform linux/amd64,linux/arm64 .`
# `npm run image` builds the same /app without a daemon; see docs/image.md.

# The base: Node.js, glibc and certificates; no shell, no package manager.
FROM gcr.io/distroless/nodejs24-debian12:nonroot AS base

FROM node:24-bookworm-slim AS build
WORKDIR /checkout
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY LICENSE ./
COPY src ./src
COPY k8s/image ./k8s/image
# The bill of materials also lists the packages of the base image.
COPY --from=base / /base
RUN node k8s/image/write-app.ts /out /base

FROM base
COPY --from=build /out /app
# The program of envoyproxy/ratelimit's image; see docs/drop-in.md.
COPY --chmod=755 k8s/image/bin/ratelimit /bin/ratelimit
# On PATH, for `kubectl exec`.
COPY --chmod=755 k8s/image/bin/curtail /bin/curtail
WORKDIR /app
USER 65532:65532
ENV PATH=/nodejs/bin:/bin \
    NODE_ENV=production \
    NODE_OPTIONS="--disable-warning=ExperimentalWarning --max-semi-space-size=8"
LABEL org.opencontainers.image.title="curtail" \
      org.opencontainers.image.licenses="Apache-2.0"
ENTRYPOINT ["/nodejs/bin/node", "/app/main.js"]
