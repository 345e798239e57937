# Two stages: the first builds wheels, so that neither pip's cache nor a compiler is in what runs at the gateway.

FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml README.md ./
COPY sql sql
COPY rules rules
COPY sinks sinks
COPY cloud_sync cloud_sync
COPY edge edge
RUN pip wheel --no-cache-dir --wheel-dir /wheels ".[watch]"

FROM python:3.11-slim
COPY --from=build /wheels /wheels
# The wheels of the first stage are the only ones there are: no version could differ.
# hadolint ignore=DL3013
RUN pip install --no-cache-dir --no-index --find-links=/wheels "penstock[watch]" \
    && rm -rf /wheels \
    && useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin penstock \
    && install -d -o penstock -g penstock /data /rules

USER 10001
ENV PYTHONUNBUFFERED=1 \
    PENSTOCK__DATA__DIR=/data
# /rules: rule files, mounted read-only and watched for changes. /data: spool, state, dead letters; must outlive the
# container, or everything that was not uploaded yet is lost with it.
VOLUME ["/rules", "/data"]

# The daemon finishes in order on SIGTERM, within shutdownTimeoutMs (10 s by default).
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=10s --retries=3 CMD ["penstock", "health"]
ENTRYPOINT ["penstock"]
CMD ["run", "/rules"]
