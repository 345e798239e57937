# Two stages: the first makes the environment, so that neither pip's cache nor the sources are in what runs at the
# gateway. Both begin with the same image, because a virtual environment belongs to the Python it was made with.

FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml README.md ./
COPY sql sql
COPY rules rules
COPY sinks sinks
COPY cloud_sync cloud_sync
COPY edge edge
RUN python -m venv /opt/penstock \
    && /opt/penstock/bin/pip install --no-cache-dir ".[object-store,re2]"

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin penstock \
    && install -d -o penstock -g penstock /data /rules
COPY --from=build /opt/penstock /opt/penstock

# By number, so that an orchestrator can see that it is not root.
USER 10001
ENV PATH=/opt/penstock/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PENSTOCK__DATA__DIR=/data
# /rules: rule files, mounted read-only and watched for changes. /data: spool, state, dead letters; must outlive the
# container, or everything that was not uploaded yet is lost with it.
VOLUME ["/rules", "/data"]

# The daemon finishes in order on SIGTERM, within shutdownTimeoutMs (10 s by default): give it that time before a kill.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=10s --retries=3 CMD ["penstock", "health"]
ENTRYPOINT ["penstock"]
CMD ["run", "/rules"]
