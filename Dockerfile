# syntax=docker/dockerfile:1

# Both have the same Python, 3.13 of Debian trixie. The base has no shell and no package manager. Name your registry's copy
# of both, by digest: --build-arg BASE=registry.example.com/distroless/python3-debian13@sha256:...
ARG BUILDER=python:3.13-slim-trixie
ARG BASE=distroless/python3-debian13:nonroot

FROM ${BUILDER} AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY webhook ./webhook
RUN python -m pip install --no-cache-dir --no-compile --disable-pip-version-check --root-user-action=ignore --target /app/lib .
# The Kubernetes client's models are larger than all the rest, and not used: what the client loads to connect is kept.
# Everything is compiled here, since nothing can be written where it runs.
RUN <<'SLIM'
set -eu
cd /app/lib
PYTHONPATH=/app/lib PYTHONDONTWRITEBYTECODE=1 python - <<'KEEP'
import importlib.util
import pathlib
import shutil
import sys

if importlib.util.find_spec("kubernetes"):
    from kubernetes import config
    from kubernetes.client import rest

    root = pathlib.Path(sys.modules["kubernetes"].__file__).parent
    used = {module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)}
    shutil.rmtree(root / "aio", ignore_errors=True)
    for part in ("api", "models"):
        for file in (root / "client" / part).glob("*.py"):
            if str(file) not in used:
                file.unlink()
KEEP
find . -type d \( -name tests -o -name testing \) -prune -exec rm -rf {} +
mkdir /app/bin
for name in fieldwarden kubectl-fieldwarden; do sed '1s|.*|#!/usr/bin/python3|' "bin/$name" >"/app/bin/$name"; done
chmod 0755 /app/bin/*
rm -rf bin
python -m compileall -q --invalidation-mode unchecked-hash /app/lib
SLIM

FROM ${BASE}
ARG VERSION=0.1.0
ARG REVISION=
LABEL org.opencontainers.image.title="fieldwarden" \
      org.opencontainers.image.description="Field-ownership policy for Kubernetes: an admission webhook that guards managedFields" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="fieldwarden" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
COPY --from=build /app /app
ENV PATH=/app/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONPATH=/app/lib PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
WORKDIR /tmp
EXPOSE 8443 8080
ENTRYPOINT ["/app/bin/fieldwarden"]
CMD ["serve", "--policies", "/etc/fieldwarden/policies", "--self-signed", "/tmp/tls"]
