# One image for web, workers, scheduler, migrations and provisioning; docker-compose.yml says which command each runs.
# In production add the digest you have checked: --build-arg PYTHON_IMAGE=python:3.13-slim-trixie@sha256:…
ARG PYTHON_IMAGE=python:3.13-slim-trixie

FROM ${PYTHON_IMAGE} AS packages
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
COPY requirements.lock /build/requirements.lock
# Wheels only: nothing is compiled here, and no compiler is in either stage.
RUN python -m venv /opt/venv && \
    /opt/venv/bin/python -m pip install --require-hashes --only-binary :all: -r /build/requirements.lock && \
    /opt/venv/bin/python -m pip uninstall --yes pip

FROM ${PYTHON_IMAGE} AS product
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
COPY --from=packages /opt/venv /opt/venv
WORKDIR /app
COPY . .
# Its number is above those of a host's users, so that it owns nothing there. The two folders become volumes, which
# take over their owner.
RUN groupadd --gid 10001 forgetmenot && \
    useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin forgetmenot && \
    install --directory --owner 10001 --group 10001 --mode 0700 /var/lib/forget-me-not /var/lib/beat && \
    python -m compileall -q /app
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=5)"]
CMD ["python", "-m", "uvicorn", "config.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--no-access-log", "--timeout-graceful-shutdown", "5"]
