# Two stages: the first makes the environment, so that neither pip nor its cache nor the sources are in what runs at
# the gateway. Both begin with the same image, because a virtual environment belongs to the Python it was made with.
# Versions and hashes come from the lock files (`make lock`). Byte code is checked by nothing but the build: it carries
# no time stamps, so two builds of one commit give the same files, and the root file system may be read-only.

FROM python:3.11-slim AS build
WORKDIR /src
ENV SOURCE_DATE_EPOCH=1767225600 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1
COPY requirements.lock requirements-build.lock ./
RUN python -m venv --without-pip /opt/penstock \
    && python -m venv /build \
    && /build/bin/pip install --require-hashes --only-binary :all: -r requirements-build.lock \
    && /build/bin/pip --python /opt/penstock/bin/python install \
       --require-hashes --only-binary :all: --no-compile -r requirements.lock
COPY pyproject.toml README.md ./
COPY sql sql
COPY rules rules
COPY sinks sinks
COPY cloud_sync cloud_sync
COPY edge edge
COPY deploy/sbom.py sbom.py
RUN /build/bin/pip wheel --no-deps --no-index --no-build-isolation --wheel-dir /wheel . \
    && /build/bin/pip --python /opt/penstock/bin/python install --no-deps --no-index --no-compile /wheel/*.whl \
    && /opt/penstock/bin/python -I sbom.py > /opt/penstock/sbom.cdx.json \
    && /opt/penstock/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/penstock/lib

FROM python:3.11-slim
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="penstock" \
      org.opencontainers.image.description="Streaming SQL rules for edge gateways" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
RUN groupadd --gid 10001 penstock \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /data --shell /usr/sbin/nologin penstock \
    && install -d -o penstock -g penstock /data /rules
COPY --from=build /opt/penstock /opt/penstock

# By number, so that an orchestrator can see that it is not root.
USER 10001:10001
ENV PATH=/opt/penstock/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PENSTOCK__DATA__DIR=/data \
    PENSTOCK_BUILD=$REVISION
# /rules: rule files, mounted read-only and watched for changes. /data: spool, state, dead letters; must outlive the
# container, or everything that was not uploaded yet is lost with it.
VOLUME ["/rules", "/data"]

# The daemon finishes in order on SIGTERM, within shutdownTimeoutMs (10 s by default): give it that time before a kill.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=10s --retries=3 CMD ["penstock", "health"]
ENTRYPOINT ["penstock"]
CMD ["run", "/rules"]
