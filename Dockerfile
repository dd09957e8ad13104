# SPDX-License-Identifier: Apache-2.0
# Two images, see docs/guide/containers.md:
#
#   docker build --target agent -t kiln-agent .
#   docker build --target server -t kiln-server .
#
# `make image-oci` builds both without Docker. tools/image-oci reads the stages below the first one.

FROM debian:trixie-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git make
WORKDIR /src
COPY . .
RUN make && tools/image-oci tree build /image

FROM scratch AS files
COPY --from=build /image/root/ /
ENV PATH=/usr/bin
LABEL org.opencontainers.image.title=Kiln org.opencontainers.image.licenses=Apache-2.0
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/kiln"]

# Listens on all addresses of the container, which takes tokens or KILN_ALLOW_ANONYMOUS=true.
FROM files AS server
COPY --from=build --chown=10001:10001 /image/empty/ /var/lib/kiln/
COPY --from=build --chown=10001:10001 /image/empty/ /run/kiln/
ENV KILN_DATA_DIR=/var/lib/kiln KILN_LISTEN=:4040 KILN_OTLP_GRPC=:4317 KILN_OTLP_HTTP=:4318
USER 10001:10001
EXPOSE 4040 4317 4318
VOLUME /var/lib/kiln
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["/usr/bin/kiln", "ready"]
CMD ["server"]

# Runs as root, and gives up what it does not need; docker run --privileged --pid=host.
FROM files AS agent
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 CMD ["/usr/bin/kiln", "ready", "--server", "http://127.0.0.1:4041"]
CMD ["agent"]
