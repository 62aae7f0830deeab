# The image of a server, for CPUs or, with SWITCHYARD_CUDA=ON, for GPUs too. docs/deployment.md says how to build and run it.
#   BASE             a Debian 12 image: what the result stands on
#   BUILD_BASE       a Debian 12 image to compile in; for CUDA with the toolkit in /usr/local/cuda
#   SWITCHYARD_CUDA  ON builds the CUDA backend. Its runtime is linked in; the driver comes from the host
#   VERSION, REVISION  for the labels
ARG BASE=debian:bookworm-slim
ARG BUILD_BASE=${BASE}

FROM ${BUILD_BASE} AS build
ARG SWITCHYARD_CUDA=OFF
ENV DEBIAN_FRONTEND=noninteractive
WORKDIR /source
COPY tools/install_dependencies.sh tools/
# A folder mounted at /ccache keeps what was compiled before.
RUN tools/install_dependencies.sh build && if [ -d /ccache ]; then apt-get install -y -qq --no-install-recommends ccache; fi
COPY . .
RUN export CCACHE_DIR=/ccache CCACHE_BASEDIR=/source CCACHE_NOHASHDIR=1; \
    cmake --preset release --log-level=WARNING -DSWITCHYARD_CUDA=${SWITCHYARD_CUDA} -DSWITCHYARD_TESTS=OFF \
 && cmake --build --preset release --target switchyard \
 && mkdir /image \
 && strip -o /image/switchyard build/release/switchyard \
 && deploy/image/runtime_packages.sh /image/switchyard > /image/packages \
 && deploy/image/describe_packages.sh libcli11-dev libsentencepiece-dev nlohmann-json3-dev > /image/compiled_in.json

FROM ${BASE}
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Switchyard" \
      org.opencontainers.image.description="Inference server for language models with sparse attention" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
RUN --mount=type=bind,from=build,source=/image,target=/build-image \
    --mount=type=bind,from=build,source=/source/deploy/image,target=/build-scripts \
    apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive xargs -a /build-image/packages apt-get install -y -qq --no-install-recommends \
 && cp /build-image/switchyard /usr/bin/switchyard \
 && mkdir -p /usr/share/switchyard /model \
 && /build-scripts/write_sbom.sh "${VERSION}" /build-image/compiled_in.json > /usr/share/switchyard/sbom.cdx.json \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log

# Only read by NVIDIA's container runtime, where there is one.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
# By number: a kubelet that insists on runAsNonRoot cannot look up names. Nothing is ever written, so any other works, too.
USER 65532:65532
WORKDIR /
# gRPC; the pages: metrics, health, dashboard.
EXPOSE 50051 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=10m --retries=3 \
  CMD ["switchyard", "health", "--server", "127.0.0.1:50051"]
ENTRYPOINT ["switchyard"]
CMD ["serve", "--model", "/model", "--http", "0.0.0.0:8080"]
